/**
 * Where the records of a load's requests lie, 37 bytes for each request: a day's worth of a busy ring, and a month's of
 * settlements, stay in memory, so that a request is found in O(log n) steps without an index on the disk.
 *
 * Sorted by request id. Ids are counted up as requests are admitted, so a new one goes to the end; only those whose
 * admission has gone already come out of order, and by few places, when a journal is opened.
 */
import { assert } from '../../protocol/assert.ts';

/** A request as the table knows it; numbers are those of records, 0 for one that is not there. */
export interface TabledRequest {
  readonly request: number;
  readonly session: number;
  /** Its first record with token ids: its admission, or what is left when the admission has gone. */
  readonly text: number;
  /** Whether its admission and all its tokens are there. */
  readonly isWhole: boolean;
  readonly ended: number;
  readonly settled: number;
  /** When it ended or was settled, whichever came last, in seconds since 1970; 0 before. */
  readonly endedAt: number;
}

export class RequestTable {
  #count = 0;
  #columns = columnsOf(16);

  get count(): number {
    return this.#count;
  }

  at(index: number): TabledRequest {
    assert(index >= 0 && index < this.#count, 'the request is in the table');
    const { request, session, text, whole, ended, settled, endedAt } = this.#columns;
    return {
      request: numberAt(request, index),
      session: numberAt(session, index),
      text: numberAt(text, index),
      isWhole: whole[index] === 1,
      ended: numberAt(ended, index),
      settled: numberAt(settled, index),
      endedAt: numberAt(endedAt, index),
    };
  }

  find(request: number): TabledRequest | null {
    const index = this.#place(request);
    return this.#has(request, index) ? this.at(index) : null;
  }

  /** Index of the request, or of the next one after it. */
  indexFrom(request: number): number {
    return this.#place(request);
  }

  admitted(request: number, session: number, number: number): void {
    const index = this.#entry(request, session);
    this.#columns.text[index] = number;
    this.#columns.whole[index] = 1;
  }

  /** A token of a request that is not in the table: its admission has gone, this is what is left. */
  leftOver(request: number, session: number, number: number): void {
    const index = this.#entry(request, session);
    if (this.#columns.text[index] === 0) this.#columns.text[index] = number;
  }

  ended(request: number, session: number, { number, at }: { readonly number: number; readonly at: number }): void {
    const index = this.#entry(request, session);
    this.#columns.ended[index] = number;
    this.#columns.endedAt[index] = at;
  }

  settled(request: number, session: number, { number, at }: { readonly number: number; readonly at: number }): void {
    const index = this.#entry(request, session);
    this.#columns.settled[index] = number;
    this.#columns.endedAt[index] = at;
  }

  /** Its admission and its tokens go. */
  textGone(request: number): void {
    const index = this.#place(request);
    if (!this.#has(request, index)) return;
    this.#columns.whole[index] = 0;
    this.#columns.text[index] = 0;
  }

  /** Takes out, of the requests at some indexes, those of which nothing is left. */
  drop(isGone: (request: number) => boolean, { from, to }: { readonly from: number; readonly to: number }): void {
    const columns = columnList(this.#columns);
    let kept = from;
    for (let index = from; index < to; index++) {
      if (isGone(numberAt(this.#columns.request, index))) continue;
      if (kept < index) for (const column of columns) column[kept] = numberAt(column, index);
      kept += 1;
    }
    for (const column of columns) column.copyWithin(kept, to, this.#count);
    this.#count -= to - kept;
    if (this.#count * 4 < this.#columns.request.length) this.#resize(Math.max(16, this.#count * 2));
  }

  #has(request: number, index: number): boolean {
    return index < this.#count && this.#columns.request[index] === request;
  }

  /** The first index whose request is not below. */
  #place(request: number): number {
    const ids = this.#columns.request;
    if (this.#count === 0 || numberAt(ids, this.#count - 1) < request) return this.#count;
    let low = 0;
    let high = this.#count - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numberAt(ids, middle) < request) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Index of the request, made in its place if it is not there. */
  #entry(request: number, session: number): number {
    const index = this.#place(request);
    if (this.#has(request, index)) return index;
    if (this.#count === this.#columns.request.length) this.#resize(this.#count * 2);
    for (const column of columnList(this.#columns)) {
      column.copyWithin(index + 1, index, this.#count);
      column[index] = 0;
    }
    this.#columns.request[index] = request;
    this.#columns.session[index] = session;
    this.#count += 1;
    return index;
  }

  #resize(length: number): void {
    const { request, session, text, whole, ended, settled, endedAt } = this.#columns;
    const next = columnsOf(length);
    const count = this.#count;
    next.request.set(request.subarray(0, count));
    next.session.set(session.subarray(0, count));
    next.text.set(text.subarray(0, count));
    next.whole.set(whole.subarray(0, count));
    next.ended.set(ended.subarray(0, count));
    next.settled.set(settled.subarray(0, count));
    next.endedAt.set(endedAt.subarray(0, count));
    this.#columns = next;
  }
}

/** Numbers of records need more than 32 bits; ids and seconds do not. */
function columnsOf(length: number): Columns {
  return {
    request: new Uint32Array(length),
    session: new Uint32Array(length),
    text: new Float64Array(length),
    whole: new Uint8Array(length),
    ended: new Float64Array(length),
    settled: new Float64Array(length),
    endedAt: new Uint32Array(length),
  };
}

interface Columns {
  readonly request: Uint32Array;
  readonly session: Uint32Array;
  readonly text: Float64Array;
  readonly whole: Uint8Array;
  readonly ended: Float64Array;
  readonly settled: Float64Array;
  readonly endedAt: Uint32Array;
}

type Column = Uint8Array | Uint32Array | Float64Array;

const columnList = (columns: Columns): readonly Column[] => {
  const { request, session, text, whole, ended, settled, endedAt } = columns;
  return [request, session, text, whole, ended, settled, endedAt];
};

const numberAt = (column: Column, index: number): number => column[index] ?? 0;

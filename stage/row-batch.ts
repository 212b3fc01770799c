/**
 * Rows of several frames gathered for one decode; or rows of one frame for several, where items are `alone`.
 *
 * Rows keep the order in which they came. Their hidden state stays in its frames until the engine takes it from there.
 */
import { assert } from '../protocol/assert.ts';
import type { HiddenState } from '../protocol/hidden-state.ts';
import type { RowsItem } from '../protocol/hop-items.ts';
import type { RequestId, SessionId, SlotIndex } from '../protocol/ids.ts';
import type { DecodeBatch } from './engine.ts';
import type { OpenRequest } from './receipt-book.ts';

/** Rows of one item, and where they begin in the batch. */
export interface RowGroup {
  readonly item: RowsItem;
  readonly request: OpenRequest;
  readonly firstRow: number;
  /** `null` for a stage that takes tokens. */
  readonly hidden: HiddenState | null;
}

/** Groups that are decoded together. */
export interface RowPiece {
  readonly groups: readonly RowGroup[];
  readonly firstRow: number;
  readonly rows: number;
}

/** The rows of one item as they stand in their frame. */
export interface RowSource {
  readonly tokens: Uint32Array;
  /** `null` for a stage that takes tokens. */
  readonly hidden: HiddenState | null;
}

export class RowBatch {
  readonly capacity: number;
  readonly tokens: Uint32Array;
  readonly #positions: Int32Array;
  readonly #sequences: Int32Array;
  readonly #outputs: Int8Array;
  #groups: RowGroup[] = [];
  #rows = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.tokens = new Uint32Array(capacity);
    this.#positions = new Int32Array(capacity);
    this.#sequences = new Int32Array(capacity);
    this.#outputs = new Int8Array(capacity);
  }

  get rows(): number {
    return this.#rows;
  }

  get groups(): readonly RowGroup[] {
    return this.#groups;
  }

  /** Whether one of its rows is decoded by itself. */
  get hasLoneRows(): boolean {
    return this.#groups.some(({ item }) => item.alone);
  }

  takes({ rowCount }: RowsItem): boolean {
    return this.#rows + rowCount <= this.capacity;
  }

  holdsSlot(slot: SlotIndex): boolean {
    return this.#groups.some(({ item }) => item.slot === slot);
  }

  holdsRequest(request: RequestId, session: SessionId): boolean {
    return this.#groups.some(({ item }) => item.request === request && item.session === session);
  }

  add(item: RowsItem, request: OpenRequest, source: RowSource): RowGroup {
    assert(this.takes(item), 'the batch has room for its rows');
    const group = { item, request, firstRow: this.#rows, hidden: source.hidden };
    this.tokens.set(source.tokens, this.#rows);
    for (let offset = 0; offset < item.rowCount; offset++) {
      this.#positions[this.#rows + offset] = item.firstPosition + offset;
      this.#sequences[this.#rows + offset] = item.slot;
      this.#outputs[this.#rows + offset] = 0;
    }
    this.#rows += item.rowCount;
    if (item.samples) this.#outputs[this.#rows - 1] = 1;
    this.#groups.push(group);
    return group;
  }

  tokensOf({ item, firstRow }: RowGroup): Uint32Array {
    return this.tokens.subarray(firstRow, firstRow + item.rowCount);
  }

  /** In order: an item that is `alone` by itself, those between two of them together. */
  pieces(): readonly RowPiece[] {
    const pieces: RowPiece[] = [];
    for (const group of this.#groups) {
      const last = pieces.at(-1);
      const { rowCount, alone } = group.item;
      if (last === undefined || alone || last.groups[0]?.item.alone === true) {
        pieces.push({ groups: [group], firstRow: group.firstRow, rows: rowCount });
      } else {
        pieces[pieces.length - 1] = { ...last, groups: [...last.groups, group], rows: last.rows + rowCount };
      }
    }
    return pieces;
  }

  /** A piece as the engine takes it, valid until `clear`. */
  decodeBatch({ groups, firstRow, rows }: RowPiece): DecodeBatch {
    const parts = groups.flatMap(({ hidden }) => (hidden === null ? [] : [hidden]));
    const [first] = groups;
    const end = firstRow + rows;
    return {
      rows,
      // It has, or had before a loss, others beside it, or it would be `alone` (R3).
      padsLoneRow: first?.item.alone === false,
      input:
        parts.length === 0
          ? { kind: 'tokens', tokens: this.tokens.subarray(firstRow, end) }
          : { kind: 'hidden', parts },
      positions: this.#positions.subarray(firstRow, end),
      sequences: this.#sequences.subarray(firstRow, end),
      outputs: this.#outputs.subarray(firstRow, end),
    };
  }

  clear(): void {
    this.#rows = 0;
    this.#groups = [];
  }
}

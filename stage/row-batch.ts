/**
 * Rows of several frames gathered for one decode.
 *
 * Rows keep the order in which they came; those of an item that is `alone` have no others beside them. Their hidden state
 * stays in its frames until the engine takes it from there.
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
  #hidden: HiddenState[] = [];
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

  /** Whether the item's rows can join those that are gathered. */
  takes({ rowCount, alone }: RowsItem): boolean {
    const [first] = this.#groups;
    if (first !== undefined && (alone || first.item.alone)) return false;
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
    const group = { item, request, firstRow: this.#rows };
    this.tokens.set(source.tokens, this.#rows);
    if (source.hidden !== null) this.#hidden.push(source.hidden);
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

  /** The batch as the engine takes it, valid until `clear`. */
  decodeBatch(): DecodeBatch {
    const parts = this.#hidden;
    const [first] = this.#groups;
    return {
      rows: this.#rows,
      // Before the loss it had others beside it, or it would be `alone` (R3).
      padsLoneRow: first?.item.phase === 'recompute' && !first.item.alone,
      input: parts.length === 0 ? { kind: 'tokens', tokens: this.tokens } : { kind: 'hidden', parts },
      positions: this.#positions,
      sequences: this.#sequences,
      outputs: this.#outputs,
    };
  }

  clear(): void {
    this.#rows = 0;
    this.#groups = [];
    this.#hidden = [];
  }
}

/**
 * Which cells of the KV cache hold which sequence, for a cache that is filled in order and has no holes.
 *
 * llama.cpp puts a row into the first empty cell from its head on, and attention adds cells up in their order, in float16
 * where values are kept so: a sequence whose later rows came to lie in cells that another sequence has left, below its
 * earlier ones, gets other bits. Where holes are closed before the next row is placed, every sequence's cells are in the
 * order of its positions, whatever its neighbours did.
 */
import { assert } from '../protocol/assert.ts';

/** Rows of a sequence that have to move. */
export interface Displaced {
  readonly sequence: number;
  readonly rows: number;
}

const empty = -1;

export class CellOrder {
  /** By cell: the sequence whose row it holds. */
  readonly #owners: Int16Array;
  /** Cells from here on are empty. */
  #end = 0;
  /** Empty cells before that. */
  #holes = 0;

  constructor(cells: number) {
    this.#owners = new Int16Array(cells).fill(empty);
  }

  get hasHoles(): boolean {
    return this.#holes > 0;
  }

  /** The next cell was filled. */
  append(sequence: number): void {
    assert(!this.hasHoles && this.#end < this.#owners.length, 'rows are placed at the end of a cache without holes');
    this.#owners[this.#end] = sequence;
    this.#end += 1;
  }

  /** Every cell was emptied. */
  clear(): void {
    this.#owners.fill(empty);
    this.#end = 0;
    this.#holes = 0;
  }

  /** A sequence's rows are those of another one, which has none. */
  rename(from: number, to: number): void {
    for (let cell = 0; cell < this.#end; cell += 1) if (this.#owners[cell] === from) this.#owners[cell] = to;
  }

  /** A sequence has lost its rows but for the first `kept`. */
  remove(sequence: number, kept: number): void {
    let rows = 0;
    for (let cell = 0; cell < this.#end; cell += 1) {
      if (this.#owners[cell] !== sequence) continue;
      rows += 1;
      if (rows <= kept) continue;
      this.#owners[cell] = empty;
      this.#holes += 1;
    }
    while (this.#end > 0 && this.#owners[this.#end - 1] === empty) {
      this.#end -= 1;
      this.#holes -= 1;
    }
  }

  /**
   * The sequences that must be taken out and put back, in this order, for the cache to have no holes: those with a row
   * behind a hole, those with a row behind one that the first ones leave, and so on.
   */
  displaced(): readonly Displaced[] {
    if (!this.hasHoles) return [];
    const moved = new Map<number, number>();
    let hole = this.#owners.subarray(0, this.#end).indexOf(empty);
    while (hole !== -1) {
      for (let cell = hole; cell < this.#end; cell += 1) {
        const owner = this.#owners[cell] ?? empty;
        if (owner !== empty && !moved.has(owner)) moved.set(owner, 0);
      }
      const before = hole;
      hole = this.#owners.findIndex((owner) => owner === empty || moved.has(owner));
      if (hole === before) break;
    }
    for (const owner of this.#owners.subarray(0, this.#end)) {
      const rows = moved.get(owner);
      if (rows !== undefined) moved.set(owner, rows + 1);
    }
    return [...moved].map(([sequence, rows]) => ({ sequence, rows }));
  }

  /** The displaced sequences have been put back, in their order. */
  settle(displaced: readonly Displaced[]): void {
    for (const { sequence } of displaced) this.remove(sequence, 0);
    assert(!this.hasHoles, 'what was not displaced lies in front of every hole');
    for (const { sequence, rows } of displaced) for (let row = 0; row < rows; row += 1) this.append(sequence);
  }
}

/**
 * `struct llama_batch` in native memory of a fixed size: a decode fills it in place and allocates nothing.
 *
 * Every row belongs to one sequence.
 */
import { assert } from '../protocol/assert.ts';
import type { Batch } from './llama-structs.ts';
import { NativeMemory } from './native-memory.ts';

export class NativeBatch {
  readonly rows: number;
  readonly tokens: Int32Array;
  /** `rows` x `width`, row-major; empty for a slice that takes tokens. */
  readonly hidden: Float32Array;
  readonly positions: Int32Array;
  readonly sequences: Int32Array;
  readonly outputs: Int8Array;

  readonly #memories: NativeMemory[] = [];
  readonly #batch: Batch;

  /** @param width floats per row of hidden state, 0 for a slice that takes tokens */
  constructor(rows: number, width: number) {
    this.rows = rows;
    const positions = this.#allocate(rows * 4);
    const sequences = this.#allocate(rows * 4);
    const sequenceCounts = this.#allocate(rows * 4);
    const sequenceIds = this.#allocate(rows * 8);
    const outputs = this.#allocate(rows);
    const input = this.#allocate(rows * Math.max(width, 1) * 4);
    this.tokens = new Int32Array(input.buffer, 0, rows);
    this.hidden = new Float32Array(input.buffer, 0, rows * width);
    this.positions = new Int32Array(positions.buffer, 0, rows);
    this.sequences = new Int32Array(sequences.buffer, 0, rows);
    this.outputs = new Int8Array(outputs.buffer, 0, rows);
    new Int32Array(sequenceCounts.buffer, 0, rows).fill(1);
    const pointers = new BigUint64Array(sequenceIds.buffer, 0, rows);
    for (let row = 0; row < rows; row += 1) pointers[row] = sequences.address + BigInt(row * 4);
    this.#batch = {
      rows: 0,
      tokens: width === 0 ? input.address : null,
      embeddings: width === 0 ? null : input.address,
      positions: positions.address,
      sequenceCounts: sequenceCounts.address,
      sequenceIds: sequenceIds.address,
      outputs: outputs.address,
    };
  }

  /** The struct for a decode of the first `rows` rows. */
  struct(rows: number): Batch {
    assert(rows > 0 && rows <= this.rows, 'the batch has room for its rows');
    this.#batch.rows = rows;
    return this.#batch;
  }

  free(): void {
    for (const memory of this.#memories) memory.free();
  }

  #allocate(bytes: number): NativeMemory {
    const memory = new NativeMemory(bytes);
    this.#memories.push(memory);
    return memory;
  }
}

/** The token candidates of one draw, in native memory (`llama_token_data_array`): filled, sampled and read by one request at a time. */
import { assert } from '../protocol/assert.ts';
import { tokenDataBytes, type Pointer } from './llama-structs.ts';
import { NativeMemory } from './native-memory.ts';

const arrayBytes = 32;
const wordsEach = tokenDataBytes / 4;
/** 32-bit words of the array struct: data (2), size (2), selected (2), sorted. */
const sizeWord = 2;
const selectedWord = 4;
const sortedWord = 6;

export class Candidates {
  readonly size: number;
  /** For `samplerApply`. */
  readonly all: Pointer;
  /** An array of one candidate, for a question about one token. */
  readonly lone: Pointer;

  readonly #memories: readonly NativeMemory[];
  readonly #ids: Int32Array;
  readonly #logits: Float32Array;
  readonly #all: Int32Array;
  readonly #loneIds: Int32Array;
  readonly #loneLogits: Float32Array;
  readonly #lone: Int32Array;

  /** @param size tokens in the vocabulary */
  constructor(size: number) {
    this.size = size;
    const table = new NativeMemory(size * tokenDataBytes);
    const all = new NativeMemory(arrayBytes);
    const loneEntry = new NativeMemory(tokenDataBytes);
    const lone = new NativeMemory(arrayBytes);
    this.#memories = [table, all, loneEntry, lone];
    this.#ids = new Int32Array(table.buffer, 0, size * wordsEach);
    this.#logits = new Float32Array(table.buffer, 0, size * wordsEach);
    this.#all = new Int32Array(all.buffer, 0, arrayBytes / 4);
    this.#loneIds = new Int32Array(loneEntry.buffer, 0, wordsEach);
    this.#loneLogits = new Float32Array(loneEntry.buffer, 0, wordsEach);
    this.#lone = new Int32Array(lone.buffer, 0, arrayBytes / 4);
    new BigUint64Array(all.buffer, 0, 1)[0] = table.address;
    new BigUint64Array(lone.buffer, 0, 1)[0] = loneEntry.address;
    this.all = all.address;
    this.lone = lone.address;
  }

  /** Makes every token a candidate. @returns whether every logit is a number below infinity */
  fill(logits: Float32Array): boolean {
    assert(logits.length === this.size, 'there is a logit for each token');
    const ids = this.#ids;
    const values = this.#logits;
    let isSound = true;
    for (let token = 0, word = 0; token < this.size; token += 1, word += wordsEach) {
      const logit = logits[token] ?? NaN;
      if (!(logit < Infinity)) isSound = false;
      ids[word] = token;
      values[word + 1] = logit;
    }
    reset(this.#all, this.size);
    return isSound;
  }

  /** Drops the candidates that a sampler has ruled out. @returns how many are left */
  dropRuledOut(): number {
    const ids = this.#ids;
    const values = this.#logits;
    const end = (this.#all[sizeWord] ?? 0) * wordsEach;
    let kept = 0;
    for (let word = 0; word < end; word += wordsEach) {
      const logit = values[word + 1] ?? -Infinity;
      if (logit === -Infinity) continue;
      ids[kept] = ids[word] ?? 0;
      values[kept + 1] = logit;
      kept += wordsEach;
    }
    reset(this.#all, kept / wordsEach);
    return kept / wordsEach;
  }

  /** The token that the last sampler of a chain chose. */
  selected(): number {
    const selected = this.#all[selectedWord] ?? -1;
    assert(selected >= 0 && selected < (this.#all[sizeWord] ?? 0), 'a candidate is selected');
    return this.#ids[selected * wordsEach] ?? -1;
  }

  fillLone(token: number): void {
    this.#loneIds[0] = token;
    this.#loneLogits[1] = 0;
    reset(this.#lone, 1);
  }

  isLoneRuledOut(): boolean {
    return this.#loneLogits[1] === -Infinity;
  }

  free(): void {
    for (const memory of this.#memories) memory.free();
  }
}

function reset(array: Int32Array, size: number): void {
  array[sizeWord] = size;
  array[sizeWord + 1] = 0;
  array[selectedWord] = -1;
  array[selectedWord + 1] = -1;
  array[sortedWord] = 0;
}

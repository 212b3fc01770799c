/** Chance that can be had again: the same seed, the same choices (mulberry32, by Tommy Ettinger; public domain). */
import { assert, present } from '../../protocol/assert.ts';

export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.imul(seed, 2654435761) ^ 0x9e3779b9) >>> 0;
  }

  /** From 0 to `bound` - 1. */
  below(bound: number): number {
    return Math.floor(this.#next() * bound);
  }

  /** Both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** True once in `count` times. */
  oneIn(count: number): boolean {
    return this.below(count) === 0;
  }

  pick<Value>(values: readonly Value[]): Value {
    assert(values.length > 0, 'there is something to choose from');
    return present(values[this.below(values.length)], 'a choice is one of those offered');
  }

  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

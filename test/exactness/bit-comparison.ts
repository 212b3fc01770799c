/** Compares float32 values bit for bit, and keeps count. */
import { assert } from '../../protocol/assert.ts';

/** What one or more comparisons found. */
export class BitComparison {
  rows = 0;
  values = 0;
  /** Values whose bits differ. */
  differing = 0;
  maxDifference = 0;

  /** @param rows how many rows the values make up */
  add(found: Float32Array, expected: Float32Array, rows: number): void {
    assert(found.length === expected.length, 'both sides have as many values');
    const foundBits = new Uint32Array(found.buffer, found.byteOffset, found.length);
    const expectedBits = new Uint32Array(expected.buffer, expected.byteOffset, expected.length);
    this.rows += rows;
    this.values += found.length;
    for (let at = 0; at < found.length; at += 1) {
      if (foundBits[at] === expectedBits[at]) continue;
      this.differing += 1;
      const difference = Math.abs((found[at] ?? NaN) - (expected[at] ?? NaN));
      // What is no number is as far away as can be.
      if (!(difference <= this.maxDifference)) this.maxDifference = Number.isNaN(difference) ? Infinity : difference;
    }
  }

  merge(other: BitComparison): void {
    this.rows += other.rows;
    this.values += other.values;
    this.differing += other.differing;
    this.maxDifference = Math.max(this.maxDifference, other.maxDifference);
  }

  get isExact(): boolean {
    return this.values > 0 && this.differing === 0;
  }

  get text(): string {
    const difference = `max difference ${this.maxDifference.toExponential(2)}`;
    return `${String(this.rows)} rows, ${String(this.values)} values, ${String(this.differing)} differ, ${difference}`;
  }
}

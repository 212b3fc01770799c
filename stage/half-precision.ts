/**
 * Hidden state to float16 and back, with ggml's own conversions: rounded to the nearest, ties to even.
 *
 * A value is rounded by itself, and an exponent belongs to a row: neighbours change nothing (X2).
 */
import { assert } from '../protocol/assert.ts';
import { halfExponentBits, isFiniteHalf, type HalfRows } from '../protocol/hidden-state.ts';
import type { LlamaLibrary } from './llama-library.ts';

export class HalfPrecision {
  readonly #library: LlamaLibrary;
  readonly #width: number;
  readonly #halves: Uint16Array;
  /** Two halves at once: most rows have nothing to be found, and it is found so twice as fast. */
  readonly #pairs: Uint32Array;
  readonly #exponents: Uint8Array;
  readonly #scaled: Float32Array;

  /** @param shape rows of the largest decode, and values of one row */
  constructor(library: LlamaLibrary, { rows, width }: { readonly rows: number; readonly width: number }) {
    this.#library = library;
    this.#width = width;
    // An even number, for the pairs.
    this.#halves = new Uint16Array(Math.ceil((rows * width) / 2) * 2);
    this.#pairs = new Uint32Array(this.#halves.buffer);
    this.#exponents = new Uint8Array(rows);
    this.#scaled = new Float32Array(width);
  }

  /** @returns views, valid until the next call */
  round(values: Float32Array): HalfRows {
    const rows = values.length / this.#width;
    assert(Number.isInteger(rows) && rows <= this.#exponents.length, 'whole rows, as many as a decode has');
    const halves = this.#halves.subarray(0, values.length);
    const exponents = this.#exponents.subarray(0, rows);
    this.#library.call.toHalves(values, halves, values.length);
    exponents.fill(0);
    if (this.#mayOverflow(values.length)) for (let row = 0; row < rows; row += 1) this.#fit(values, row);
    return { halves, exponents };
  }

  /** The values of rounded rows, exactly. */
  widen({ halves, exponents }: HalfRows, into: Float32Array): void {
    assert(into.length >= halves.length, 'there is room for the values');
    this.#library.call.fromHalves(halves, into, halves.length);
    exponents.forEach((exponent, row) => {
      if (exponent === 0) return;
      const scale = 2 ** exponent;
      const end = (row + 1) * this.#width;
      for (let at = row * this.#width; at < end; at += 1) into[at] = (into[at] ?? NaN) * scale;
    });
  }

  /** Whether any of the first values came out as no finite number. What is left of another decode may say so too often. */
  #mayOverflow(length: number): boolean {
    const pairs = this.#pairs;
    const count = Math.ceil(length / 2);
    const high = halfExponentBits * 0x1_0000;
    for (let at = 0; at < count; at += 1) {
      const pair = pairs[at] ?? 0;
      if ((pair & halfExponentBits) === halfExponentBits || (pair & high) === high) return true;
    }
    return false;
  }

  /** Rounds a row again, smaller by a power of two, where it has finite values that float16 has not. */
  #fit(values: Float32Array, row: number): void {
    const from = row * this.#width;
    const to = from + this.#width;
    const halves = this.#halves.subarray(from, to);
    if (halves.every(isFiniteHalf)) return;
    const rowValues = values.subarray(from, to);
    let greatest = 0;
    for (const value of rowValues) if (Number.isFinite(value)) greatest = Math.max(greatest, Math.abs(value));
    if (greatest < leastOverflow) return;
    const exponent = Math.floor(Math.log2(greatest)) - mostHalfExponent + 1;
    const scale = 2 ** -exponent;
    rowValues.forEach((value, at) => {
      this.#scaled[at] = value * scale;
    });
    this.#library.call.toHalves(this.#scaled, halves, this.#width);
    this.#exponents[row] = exponent;
  }
}

/** Halfway between the greatest float16 and what would be the next: from here on, rounding gives infinity. */
const leastOverflow = 65_520;
/** The greatest float16 is a little below 2 to the power of this and one more. */
const mostHalfExponent = 15;

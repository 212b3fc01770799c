/**
 * Hidden state to float16 and back, with ggml's own conversions: rounded to the nearest, ties to even.
 *
 * A value is rounded by itself, and an exponent belongs to a row: neighbours change nothing (X2).
 */
import { assert } from '../protocol/assert.ts';
import { halfExponentBits, isFiniteHalf, type HalfRows, type HiddenState } from '../protocol/hidden-state.ts';
import type { LlamaLibrary } from './llama-library.ts';

export class HalfPrecision {
  readonly #library: LlamaLibrary;
  readonly #width: number;
  readonly #scaled: Float32Array;

  /** @param width values of one row */
  constructor(library: LlamaLibrary, width: number) {
    this.#library = library;
    this.#width = width;
    this.#scaled = new Float32Array(width);
  }

  /** @param into as many rows, their halves aligned to 4 bytes; new ones where it is not given */
  round(values: Float32Array, into?: HiddenState): HalfRows {
    const rows = values.length / this.#width;
    const given = into instanceof Float32Array ? undefined : into;
    const { halves, exponents } = given ?? { halves: new Uint16Array(values.length), exponents: new Uint8Array(rows) };
    assert(exponents.length === rows && halves.length === values.length, 'as many rows on both sides');
    this.#library.call.toHalves(values, halves, values.length);
    exponents.fill(0);
    if (areFinite(halves)) return { halves, exponents };
    for (let row = 0; row < rows; row += 1) {
      const part = [row * this.#width, (row + 1) * this.#width] as const;
      exponents[row] = this.#fit(values.subarray(...part), halves.subarray(...part));
    }
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

  /**
   * Rounds a row again, smaller by a power of two, where it has finite values that float16 has not.
   * @returns the exponent
   */
  #fit(values: Float32Array, halves: Uint16Array): number {
    if (halves.every(isFiniteHalf)) return 0;
    let greatest = 0;
    for (const value of values) if (Number.isFinite(value)) greatest = Math.max(greatest, Math.abs(value));
    if (greatest < leastOverflow) return 0;
    const exponent = Math.floor(Math.log2(greatest)) - mostHalfExponent + 1;
    const scale = 2 ** -exponent;
    values.forEach((value, at) => {
      this.#scaled[at] = value * scale;
    });
    this.#library.call.toHalves(this.#scaled, halves, this.#width);
    return exponent;
  }
}

/** Looks at two halves at once: there is hardly ever anything to be found, and it takes half the time. */
function areFinite(halves: Uint16Array): boolean {
  const count = Math.floor(halves.length / 2);
  const pairs = new Uint32Array(halves.buffer, halves.byteOffset, count);
  const high = halfExponentBits * 0x1_0000;
  for (let at = 0; at < count; at += 1) {
    const pair = pairs[at] ?? 0;
    if ((pair & halfExponentBits) === halfExponentBits || (pair & high) === high) return false;
  }
  return halves.length % 2 === 0 || isFiniteHalf(halves.at(-1) ?? 0);
}

/** Halfway between the greatest float16 and what would be the next: from here on, rounding gives infinity. */
const leastOverflow = 65_520;
/** The greatest float16 is a little below 2 to the power of this and one more. */
const mostHalfExponent = 15;

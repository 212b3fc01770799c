/**
 * Rows of hidden state as they stand in a frame: as they were computed, or rounded to float16 (`wire` of a plan).
 *
 * float16 ends at 65504, and some models have values beyond. A row with such values is divided by a power of two first, which
 * changes no digit of it; the exponent travels with the row. So whatever is a finite number stays one.
 */
import type { WireType } from './plan.ts';

/** Row-major. */
export type HiddenState = Float32Array | HalfRows;

/** Value i of row r is the float16 `halves[r * width + i]` times 2 to the power of `exponents[r]`. */
export interface HalfRows {
  /** The bits of float16. */
  readonly halves: Uint16Array;
  /** 0 for each row that float16 has without it. */
  readonly exponents: Uint8Array;
}

export const wireOf = (hidden: HiddenState): WireType => (hidden instanceof Float32Array ? 'f32' : 'f16');

export const hiddenLength = (hidden: HiddenState): number =>
  hidden instanceof Float32Array ? hidden.length : hidden.halves.length;

/** Rows `from` (included) to `to` (excluded), not copied. */
export function hiddenRows(
  hidden: HiddenState,
  { from, to, width }: { readonly from: number; readonly to: number; readonly width: number },
): HiddenState {
  if (hidden instanceof Float32Array) return hidden.subarray(from * width, to * width);
  const { halves, exponents } = hidden;
  return { halves: halves.subarray(from * width, to * width), exponents: exponents.subarray(from, to) };
}

/** Whether every value is a number, and finite. */
export const isFiniteHidden = (hidden: HiddenState): boolean =>
  hidden instanceof Float32Array ? hidden.every(Number.isFinite) : hidden.halves.every(isFiniteHalf);

/** float16 has its infinities and what is no number where all bits of the exponent are set. */
export const isFiniteHalf = (half: number): boolean => (half & halfExponentBits) !== halfExponentBits;

export const halfExponentBits = 0x7c00;

/** The seed of one draw (X3): a function of the request's seed, the step and the attempt, so that a draw has no history. */
import { assert } from '../protocol/assert.ts';

const mask = 0xffff_ffff_ffff_ffffn;
/** llama.cpp takes this one to mean "any seed". */
const anySeed = 0xffff_ffff;

/**
 * @param seed of the request, unsigned 32-bit
 * @param step index of the token in its completion, from 0
 * @param attempt 0; 1 for the second draw of a step whose first the grammar refused
 * @returns unsigned 32-bit, never llama.cpp's "any seed"
 */
export function drawSeed(seed: number, step: number, attempt: 0 | 1): number {
  assert(Number.isInteger(step) && step >= 0 && step < 2 ** 31, 'a step is counted from 0');
  const word = (BigInt(seed) << 32n) | BigInt(step * 2 + attempt);
  const mixed = Number(mix(mix(word)) >> 32n);
  return mixed === anySeed ? 0 : mixed;
}

/** One step of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
function mix(word: bigint): bigint {
  let mixed = (word + 0x9e37_79b9_7f4a_7c15n) & mask;
  mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58_476d_1ce4_e5b9n) & mask;
  mixed = ((mixed ^ (mixed >> 27n)) * 0x94d0_49bb_1331_11ebn) & mask;
  return mixed ^ (mixed >> 31n);
}

/** Whether the memory of a process has grown in the second half of a run. Pure. */
import { assert } from '../../protocol/assert.ts';
import { median } from '../bench/statistics.ts';

/** A heap grows before it is collected: a few samples at either end of the half tell more than one each. */
const endSamples = 5;

/** Samples that are needed to tell. */
export const leastSamples = 4 * endSamples;

/**
 * The growth from the middle of a run to its end, in the unit of its samples; negative where it has shrunk.
 * @param samples at equal distances, in order
 */
export function secondHalfGrowth(samples: readonly number[]): number {
  assert(samples.length >= leastSamples, 'there are enough samples to tell');
  const half = samples.slice(Math.floor(samples.length / 2));
  return median(half.slice(-endSamples)) - median(half.slice(0, endSamples));
}

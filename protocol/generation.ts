/**
 * How a load's number is chosen (G1).
 *
 * The high 20 bits count the loads of a ring, the low 44 are random: greater than every earlier one, and not to be
 * guessed from its digest.
 */
import { P4Error } from './errors.ts';
import { generation, type Generation, type RingName } from './ids.ts';

const randomBits = 44n;
const greatestCount = (1n << (64n - randomBits)) - 1n;

/**
 * @param newest the greatest generation this loader has used for the ring, `null` when there is none
 * @param random eight random bytes; 44 bits of them are used
 * @throws GENERATIONS_EXHAUSTED after 2^20 loads of one ring
 */
export function nextGeneration(ring: RingName, newest: Generation | null, random: Uint8Array): Generation {
  const count = newest === null ? 1n : (newest >> randomBits) + 1n;
  if (count > greatestCount) throw new P4Error('GENERATIONS_EXHAUSTED', { ring });
  const low = Buffer.from(random).readBigUInt64LE(0) & ((1n << randomBits) - 1n);
  return generation(((count << randomBits) | low).toString());
}

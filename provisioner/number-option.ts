/** Options that are whole numbers. */
import { P4Error } from '../protocol/errors.ts';

/**
 * @param range the least and the greatest value, both allowed
 * @throws INVALID_ARGUMENT
 */
export function wholeNumber(option: string, text: string, range: readonly [number, number]): number {
  const [least, greatest] = range;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  if (!(value >= least && value <= greatest)) {
    throw new P4Error('INVALID_ARGUMENT', {
      option,
      found: text,
      expected: `a whole number from ${least} to ${greatest}`,
    });
  }
  return value;
}

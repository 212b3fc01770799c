/** `--request`: a request by its number, as `infer` told it. */
import { wholeNumber } from './number-option.ts';

/** @throws INVALID_ARGUMENT */
export const requestNumber = (text: string): number => wholeNumber('--request', text, [1, 0xffff_ffff]);

/** A failure as data, for decisions and files: an error's code and facts, where an exception would be code. */
import type { ErrorCode, ErrorFacts, P4Error } from '../protocol/errors.ts';

export interface Failure {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;
}

export const failureOf = ({ code, facts }: P4Error): Failure => ({ code, facts });

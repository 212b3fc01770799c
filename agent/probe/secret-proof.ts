/**
 * How two probe programs prove that they know this run's secret, without showing it to who listens in: each sends a
 * number that was never used, and gets back a keyed digest of it.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export const freshNonce = (): string => randomBytes(16).toString('hex');

export interface ProofParts {
  readonly secret: string;
  /** A proof of one side is none of the other's. */
  readonly side: 'caller' | 'listener';
  /** The other side's nonce, and whatever is claimed with the proof. */
  readonly claims: readonly string[];
}

export const proofOf = ({ secret, side, claims }: ProofParts): string =>
  createHmac('sha256', Buffer.from(secret, 'hex'))
    .update(JSON.stringify([side, ...claims]))
    .digest('hex');

export function isProof(text: unknown, parts: ProofParts): boolean {
  if (typeof text !== 'string') return false;
  const [found, expected] = [Buffer.from(text), Buffer.from(proofOf(parts))];
  return found.length === expected.length && timingSafeEqual(found, expected);
}

/** Calls that were answered with an error, and generations that did not fit. */
import type { ErrorCode } from '../../protocol/errors.ts';

export const mismatchPlaces = ['call', 'link', 'stage'] as const;
export type MismatchPlace = (typeof mismatchPlaces)[number];

export interface FailureCount {
  readonly method: string;
  readonly code: string;
  count: number;
}

export class CallMeter {
  /** As many as there are calls and codes, at most. */
  readonly #failures = new Map<string, FailureCount>();
  readonly mismatches: Record<MismatchPlace, number> = { call: 0, link: 0, stage: 0 };

  get failures(): Iterable<FailureCount> {
    return this.#failures.values();
  }

  /** @param method `Service.Name` of a call that is served */
  failed(method: string, code: ErrorCode): void {
    const key = `${method} ${code}`;
    const known = this.#failures.get(key);
    if (known === undefined) this.#failures.set(key, { method, code, count: 1 });
    else known.count += 1;
    if (code === 'GENERATION_MISMATCH') this.mismatches[method === 'Ring.Hops' ? 'link' : 'call'] += 1;
  }

  /** A ring was suspended for what the code says. */
  suspended(code: string): void {
    if (code === 'GENERATION_MISMATCH' || code === 'RECEIPT_GENERATION_MISMATCH') this.mismatches.stage += 1;
  }
}

/**
 * Taking a load from one agent again, when its Load call may still be under way: pure, a part of the loader's step.
 *
 * Two calls to one agent may be handled in either order. An Unload that finds nothing may have overtaken its Load, so an
 * agent is done with only when both calls are answered, and a Load that ends well after an Unload is unloaded again.
 */
import { unreachable } from '../protocol/assert.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import type { Failure } from './failure.ts';

export interface Withdrawal {
  readonly host: HostName;
  /** `done`: it ended well, and no Unload has been sent since. */
  readonly load: 'running' | 'done' | 'ended';
  readonly unload: 'asked' | 'answered';
}

/** An answer to one of the two calls. */
export type WithdrawalNews =
  | { readonly kind: 'load-done' }
  | { readonly kind: 'load-failed' }
  | { readonly kind: 'unloaded' }
  | { readonly kind: 'unload-failed'; readonly failure: Failure };

export type WithdrawalStep =
  | { readonly kind: 'waiting'; readonly next: Withdrawal }
  /** Send another Unload. */
  | { readonly kind: 'again'; readonly next: Withdrawal }
  /** Nothing of the load is there any more. */
  | { readonly kind: 'clear' }
  /** The agent may still hold it. */
  | { readonly kind: 'left'; readonly failure: Failure };

/** What an agent answers that has not the load: another one's name or number is no concern of ours. */
const nothingThere: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['RING_UNKNOWN', 'GENERATION_MISMATCH']);

export function withdrawalStep(from: Withdrawal, news: WithdrawalNews): WithdrawalStep {
  switch (news.kind) {
    case 'load-done':
      if (from.load !== 'running') return { kind: 'waiting', next: from };
      return from.unload === 'answered' ? again(from) : { kind: 'waiting', next: { ...from, load: 'done' } };
    case 'load-failed':
      if (from.load !== 'running') return { kind: 'waiting', next: from };
      return from.unload === 'answered' ? { kind: 'clear' } : { kind: 'waiting', next: { ...from, load: 'ended' } };
    case 'unloaded':
      return from.load === 'running' ? answered(from) : { kind: 'clear' };
    case 'unload-failed':
      if (!nothingThere.has(news.failure.code)) return { kind: 'left', failure: news.failure };
      if (from.load === 'running') return answered(from);
      return from.load === 'done' ? again(from) : { kind: 'clear' };
    default:
      return unreachable(news);
  }
}

const again = (from: Withdrawal): WithdrawalStep => ({
  kind: 'again',
  next: { ...from, load: 'ended', unload: 'asked' },
});
const answered = (from: Withdrawal): WithdrawalStep => ({ kind: 'waiting', next: { ...from, unload: 'answered' } });

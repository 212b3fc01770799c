/**
 * One prompt answered by a ring, from the open of its session to its settlement.
 *
 * However it ends (an error, Ctrl-C, a reader that went away), the session is closed before this returns, and what runs in
 * it is cancelled, as far as the agent still answers.
 */
import { performance } from 'node:perf_hooks';

import { assert } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import type { GatheredEnd, GatheredToken, SettledStage } from '../protocol/messages.ts';
import type { Sampling } from '../protocol/sampling.ts';
import type { HeldSession, RingCalls, Submission } from './ring-calls.ts';
import type { TokenTimes } from './stage-work.ts';

export type Prompt =
  { readonly kind: 'text'; readonly text: string } | { readonly kind: 'tokens'; readonly ids: readonly number[] };

export interface RequestOrder {
  readonly prompt: Prompt;
  /** Whether text like `<|user|>` stands for a control token. */
  readonly parseSpecial: boolean;
  readonly sampling: Sampling;
  /** `null`: until the session's context is full. */
  readonly maxTokens: number | null;
  readonly stopStrings: readonly string[];
  readonly ignoreEnd: boolean;
}

/** What a caller is told while the request runs, in order. */
export type RequestNews =
  | { readonly kind: 'submitted'; readonly promptTokens: number; readonly contextTokens: number }
  | { readonly kind: 'token'; readonly token: GatheredToken };

export interface RequestResult {
  readonly end: GatheredEnd;
  /** The receipts of all stages, in ring order. */
  readonly stages: readonly SettledStage[];
  readonly emitted: number;
  readonly times: TokenTimes;
}

export interface RequestRun {
  readonly ring: RingCalls;
  readonly order: RequestOrder;
  readonly signal: AbortSignal;
  readonly onNews: (news: RequestNews) => void;
}

/** @throws what the agent refuses or the connection fails with; CANCELLED */
export async function runRequest(run: RequestRun): Promise<RequestResult> {
  const session = await run.ring.openSession(run.signal);
  try {
    return await answered(run, session);
  } finally {
    await session.letGo().catch(onlyRefused);
  }
}

async function answered(run: RequestRun, { session, contextTokens }: HeldSession): Promise<RequestResult> {
  const { ring, order, signal, onNews } = run;
  const submittedMs = performance.now();
  const { request, promptTokens } = await ring.submit(submission(order, session, contextTokens), signal);
  onNews({ kind: 'submitted', promptTokens, contextTokens });
  const { end, times } = await gathered(run, { session, request, submittedMs });
  const settlement = await ring.settle(session, request, signal);
  assert(settlement.state === 'settled', 'a request that has ended is settled');
  return { end, stages: settlement.stages, emitted: settlement.emitted, times };
}

const submission = (order: RequestOrder, session: number, contextTokens: number): Submission => ({
  session,
  parseSpecial: order.parseSpecial,
  sampling: JSON.stringify(order.sampling),
  // No completion is longer than its context.
  maxTokens: order.maxTokens ?? contextTokens,
  stop: order.stopStrings,
  ignoreEnd: order.ignoreEnd,
  ...(order.prompt.kind === 'text'
    ? { prompt: 'text', text: order.prompt.text }
    : { prompt: 'tokens', tokens: { ids: order.prompt.ids } }),
});

interface Gathering {
  readonly session: number;
  readonly request: number;
  readonly submittedMs: number;
}

async function gathered(run: RequestRun, at: Gathering): Promise<{ end: GatheredEnd; times: TokenTimes }> {
  let times: TokenTimes = { submittedMs: at.submittedMs, firstMs: null, lastMs: null, tokens: 0 };
  for await (const event of run.ring.gather(at.session, at.request, run.signal)) {
    switch (event.event) {
      case 'token': {
        const now = performance.now();
        assert(event.token.index === times.tokens, 'tokens come in order, each once');
        times = { ...times, firstMs: times.firstMs ?? now, lastMs: now, tokens: times.tokens + 1 };
        run.onNews({ kind: 'token', token: event.token });
        break;
      }
      case 'end':
        return { end: event.end, times };
      case undefined:
        break;
    }
  }
  throw new P4Error('RPC_FAILED', {
    method: 'Gather',
    found: 'the end of the stream',
    expected: 'the end of the request',
  });
}

/** Why the request ended is what to report: an agent that refuses or is gone has no session left to end. */
function onlyRefused(error: unknown): void {
  if (!(error instanceof P4Error)) throw error;
}

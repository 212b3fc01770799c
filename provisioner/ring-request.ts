/**
 * One prompt answered by a ring, from the open of its session to its settlement; or an earlier one read to its end.
 *
 * However it ends (an error, Ctrl-C, a reader that went away), the session is closed before this returns, and what runs in
 * it is cancelled, as far as the agent still answers. Two things leave it as it is, to linger and be taken up again: a
 * connection that did not come back in time, and a reader of an earlier request who leaves before its end.
 */
import { performance } from 'node:perf_hooks';

import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { GatheredEnd, SettledStage, SubmitReply } from '../protocol/messages.ts';
import type { Sampling } from '../protocol/sampling.ts';
import { RequestReader } from './request-reader.ts';
import { isCutShort, mayPass, type ReadingNews } from './request-reading.ts';
import type { RequestPlace, RingCalls, Submission } from './ring-calls.ts';
import { SessionLease, type LeaseOrder } from './session-lease.ts';
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
/** All sessions are taken, and so many wait before. */
export interface SessionWaits {
  readonly kind: 'waiting';
  readonly ahead: number;
}

export type RequestNews = SessionWaits | RequestSubmitted | ReadingNews;

export interface RequestSubmitted {
  readonly kind: 'submitted';
  readonly session: number;
  readonly request: number;
  readonly promptTokens: number;
  readonly contextTokens: number;
}

export interface RequestResult {
  readonly end: GatheredEnd;
  /** Whether all receipts are there; those of a ring that is suspended are given when it is back. */
  readonly isSettled: boolean;
  /** The receipts of all stages, in ring order; none before it is settled. */
  readonly stages: readonly SettledStage[];
  readonly emitted: number;
  readonly times: TokenTimes;
}

interface RingRun {
  readonly ring: RingCalls;
  readonly signal: AbortSignal;
  readonly onNews: (news: RequestNews) => void;
  /** How long to go on without a connection to the head's agent: not at all unless it says. */
  readonly deadlineMs?: number;
}

export interface RequestRun extends RingRun {
  readonly order: RequestOrder;
  /** Prompts with the same key that begin alike run from where they differ; unless it says, the whole prompt runs. */
  readonly cacheKey?: string;
}

export interface ResumedRun extends RingRun {
  readonly request: number;
  /** Index of the first token that is wanted. */
  readonly from: number;
}

/** @throws what the agent refuses or the connection fails with; REQUEST_CUT_OFF, CANCELLED */
export async function runRequest(run: RequestRun): Promise<RequestResult> {
  const { cacheKey = '' } = run;
  const lease = await SessionLease.open({ ...leaseOrder(run), cacheKey });
  try {
    const result = await answered(run, lease);
    await lease.letGo();
    return result;
  } catch (error) {
    // What was cut off may be read on by another command.
    await (error instanceof P4Error && error.code === 'REQUEST_CUT_OFF' ? lease.leave() : lease.letGo());
    throw error;
  }
}

/** Reads a request that exists, in its client's place. @throws as `runRequest`; REQUEST_UNKNOWN, REQUEST_EXPIRED */
export async function resumeRequest(run: ResumedRun): Promise<RequestResult> {
  const { ring, request, from, signal } = run;
  const of = { session: 0, request };
  const { state, session } = await ring.settleWithin(of, limits.receiptsMs, signal);
  // A session without a lease is closed with what runs in it: whoever reads keeps it from that.
  const lease = await SessionLease.takeUp(leaseOrder(run), state === 'settled' ? 0 : session);
  try {
    const reader = new RequestReader({ ...run, lease, from, deadlineMs: run.deadlineMs ?? 0 });
    const end = await reader.read(request);
    const result = { end, ...(await settlement(run, end, of)), times: unknownTimes };
    await lease.letGo();
    return result;
  } catch (error) {
    await lease.leave();
    throw error;
  }
}

/** Tokens that were there before they were asked for say nothing about the ring's speed. */
const unknownTimes: TokenTimes = { submittedMs: 0, firstMs: null, lastMs: null, tokens: 0 };

const leaseOrder = ({ ring, deadlineMs = 0, signal, onNews }: RingRun): LeaseOrder => ({
  ...{ ring, lingerMs: deadlineMs, signal },
  onWaiting: (ahead) => {
    onNews({ kind: 'waiting', ahead });
  },
});

async function answered(run: RequestRun, lease: SessionLease): Promise<RequestResult> {
  let times: TokenTimes = { submittedMs: performance.now(), firstMs: null, lastMs: null, tokens: 0 };
  const onNews = (news: ReadingNews): void => {
    if (news.kind === 'token') {
      const now = performance.now();
      times = { ...times, firstMs: times.firstMs ?? now, lastMs: now, tokens: times.tokens + 1 };
    }
    run.onNews(news);
  };
  const reader = new RequestReader({ ...run, lease, onNews, from: 0, deadlineMs: run.deadlineMs ?? 0 });
  const { request, promptTokens } = await submitted(run, lease, reader);
  const { session, contextTokens } = lease;
  run.onNews({ kind: 'submitted', session, request, promptTokens, contextTokens });
  const end = await reader.read(request);
  return { end, ...(await settlement(run, end, { session, request })), times };
}

/**
 * Whether an agent took a submission that was cut short is not known: it is made again in another session, and the former
 * one is closed first, so that the prompt is answered once. One whose text met no stage that could read it waits for the
 * ring as all others do (R1).
 */
async function submitted(
  { ring, order, signal }: RequestRun,
  lease: SessionLease,
  reader: RequestReader,
): Promise<SubmitReply> {
  try {
    return await ring.submit(submission(order, lease), signal);
  } catch (error) {
    if (!(error instanceof P4Error) || !(isCutShort(error) || error.code === 'STAGE_LOST')) throw error;
    await reader.outlast(error);
    return reader.whileLasting(async () => {
      await lease.renew();
      return ring.submit(submission(order, lease), signal);
    });
  }
}

const submission = (order: RequestOrder, { session, contextTokens }: SessionLease): Submission => ({
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

type Settled = Pick<RequestResult, 'isSettled' | 'stages' | 'emitted'>;

/**
 * Of a request that has ended. Its text is told already: whatever keeps its receipts from coming now is no failure of it,
 * and those of a ring that is lost are not waited for.
 */
async function settlement({ ring, signal }: RingRun, end: GatheredEnd, of: RequestPlace): Promise<Settled> {
  const notSettled: Settled = { isSettled: false, stages: [], emitted: end.completionTokens };
  if (end.reason === 'ring-lost' || end.reason === 'journal-failed') return notSettled;
  try {
    const { state, stages, emitted } = await ring.settleWithin(of, limits.receiptsMs, signal);
    return state === 'settled' ? { isSettled: true, stages, emitted } : notSettled;
  } catch (error) {
    if (!signal.aborted && error instanceof P4Error && mayPass(error)) return notSettled;
    throw error;
  }
}

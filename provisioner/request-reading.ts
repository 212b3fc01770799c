/**
 * How a reader of a request gets through losses: what to do about each event, and about each connection that breaks. Pure.
 *
 * - S1, J8: tokens are told in order, each once, whatever comes between; the next one that is wanted has index `next`.
 * - R1: the ring's own losses are the agent's to wait for; each is told once, and its end.
 * - A connection that breaks is dialled again until the deadline has passed without it; the deadline begins with the loss,
 *   and anew once something came through, or the connection stood for a while.
 * - What an agent refuses for good (another generation, a request that is unknown) ends the reading at once.
 */
import { unreachable } from '../protocol/assert.ts';
import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { GatheredEnd, GatheredPause, GatheredToken, GatherEvent } from '../protocol/messages.ts';

export interface Reading {
  /** How long to go on without a connection; 0: not at all. */
  readonly deadlineMs: number;
  /** The first token that has not been told. */
  readonly next: number;
  readonly connection: Connection;
  /** The ring's loss that was told last and has not ended. */
  readonly pause: Pause | null;
}

export type Connection =
  /** `lossMs`: when the loss began that it may be back from; `null` once it is known to be. */
  | { readonly kind: 'up'; readonly sinceMs: number; readonly lossMs: number | null; readonly tries: number }
  | { readonly kind: 'down'; readonly lossMs: number; readonly tries: number };

interface Pause {
  /** Stage, host and reason. */
  readonly key: string;
  /** Told over a connection that has broken since: its end may have been missed. */
  readonly isStale: boolean;
}

export type ReadingInput =
  | { readonly kind: 'event'; readonly event: GatherEvent; readonly atMs: number }
  /** A try to be connected again came through. */
  | { readonly kind: 'connected'; readonly atMs: number }
  /** The stream, the lease, or a try to have them again failed. */
  | { readonly kind: 'failed'; readonly error: P4Error; readonly atMs: number };

/** What a reader is told beside the text. Times are of the inputs' clock. */
export type ReadingNews =
  | { readonly kind: 'token'; readonly token: GatheredToken }
  | { readonly kind: 'paused'; readonly pause: GatheredPause; readonly untilMs: number }
  | { readonly kind: 'resumed' }
  | { readonly kind: 'disconnected'; readonly error: P4Error; readonly untilMs: number }
  | { readonly kind: 'reconnected' };

export type ReadingAction =
  | { readonly kind: 'tell'; readonly news: ReadingNews }
  | { readonly kind: 'redial'; readonly afterMs: number }
  | { readonly kind: 'finish'; readonly end: GatheredEnd }
  | { readonly kind: 'fail'; readonly failure: ReadingFailure };

export type ReadingFailure =
  | { readonly kind: 'refused'; readonly error: P4Error }
  /** The deadline passed. */
  | { readonly kind: 'cut-off'; readonly last: P4Error; readonly tries: number; readonly downMs: number };

export interface ReadingStep {
  readonly reading: Reading;
  readonly actions: readonly ReadingAction[];
}

/** @param from index of the first token that is wanted */
export const beginReading = (from: number, deadlineMs: number, atMs: number): Reading => ({
  deadlineMs,
  next: from,
  connection: { kind: 'up', sinceMs: atMs, lossMs: null, tries: 0 },
  pause: null,
});

/**
 * Failures that may pass by themselves: of the connection, of an agent that starts again, of one that has its stages back
 * only after it answers.
 *
 * CANCELLED is one where nobody here cancelled: an agent that ends resets its streams.
 */
const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(['AGENT_UNREACHABLE', 'AGENT_STOPPING', 'RPC_TIMED_OUT', 'RPC_FAILED', 'CANCELLED'] as const),
  ...(['RING_EMPTY', 'RING_NOT_READY', 'NOT_THE_HEAD', 'JOURNAL_WRITE_FAILED'] as const),
  ...(['STAGE_LOST', 'LINK_LOST', 'RING_STALLED'] as const),
]);

export const mayPass = ({ code }: P4Error): boolean => passing.has(code);

const ofConnection: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(['AGENT_UNREACHABLE', 'AGENT_STOPPING', 'RPC_TIMED_OUT', 'CANCELLED'] as const),
]);

/** Whether a call failed on its way, so that it is not known what the agent made of it. */
export const isCutShort = ({ code }: P4Error): boolean => ofConnection.has(code);

export function readingStep(reading: Reading, input: ReadingInput): ReadingStep {
  switch (input.kind) {
    case 'event':
      return heard(reading, input);
    case 'connected':
      return connected(reading, input.atMs);
    case 'failed':
      return failed(reading, input);
    default:
      return unreachable(input);
  }
}

/** A connection of which something came is no part of a former loss. */
function heard(reading: Reading, { event, atMs }: Extract<ReadingInput, { kind: 'event' }>): ReadingStep {
  const up: Connection = { kind: 'up', sinceMs: atMs, lossMs: null, tries: 0 };
  const { reading: next, actions } = happened({ ...reading, connection: up }, event, atMs);
  const isBack = reading.connection.kind === 'down';
  return { reading: next, actions: isBack ? [tell({ kind: 'reconnected' }), ...actions] : actions };
}

function happened(standing: Reading, event: GatherEvent, atMs: number): ReadingStep {
  switch (event.event) {
    case 'token':
      return tokenCame(standing, event.token);
    case 'end':
      return { reading: standing, actions: [{ kind: 'finish', end: event.end }] };
    case 'paused':
      return paused(standing, event.paused, atMs);
    case 'resumed':
      return resumed(standing);
    case undefined:
      return { reading: standing, actions: [] };
    default:
      return unreachable(event);
  }
}

function tokenCame(reading: Reading, token: GatheredToken): ReadingStep {
  if (token.index !== reading.next) {
    const facts = { method: 'Outer.Gather', found: `token ${token.index}`, expected: `token ${reading.next}` };
    return refuse(reading, new P4Error('RPC_FAILED', facts));
  }
  // A suspended ring draws nothing, but what was drawn before may still be on its way to a reader that came back.
  const pause = reading.pause?.isStale === true ? null : reading.pause;
  return { reading: { ...reading, next: reading.next + 1, pause }, actions: [tell({ kind: 'token', token })] };
}

function paused(reading: Reading, pause: GatheredPause, atMs: number): ReadingStep {
  const key = `${pause.node} ${pause.host} ${pause.code}`;
  const next = { ...reading, pause: { key, isStale: false } };
  if (reading.pause?.key === key) return { reading: next, actions: [] };
  return { reading: next, actions: [tell({ kind: 'paused', pause, untilMs: atMs + pause.remainingMs })] };
}

const resumed = (reading: Reading): ReadingStep =>
  reading.pause === null
    ? { reading, actions: [] }
    : { reading: { ...reading, pause: null }, actions: [tell({ kind: 'resumed' })] };

function connected(reading: Reading, atMs: number): ReadingStep {
  const { connection } = reading;
  if (connection.kind === 'up') return { reading, actions: [] };
  const up: Connection = { ...connection, kind: 'up', sinceMs: atMs };
  return { reading: { ...reading, connection: up }, actions: [tell({ kind: 'reconnected' })] };
}

function failed(reading: Reading, { error, atMs }: Extract<ReadingInput, { kind: 'failed' }>): ReadingStep {
  if (!mayPass(error)) return refuse(reading, error);
  const { connection, deadlineMs } = reading;
  const { lossMs, tries } = lossOf(connection, atMs);
  const remainingMs = lossMs + deadlineMs - atMs;
  // Nobody wanted to wait, so that nothing was tried.
  if (deadlineMs === 0) return refuse(reading, error);
  if (remainingMs <= 0) {
    const failure: ReadingFailure = { kind: 'cut-off', last: error, tries, downMs: atMs - lossMs };
    return { reading, actions: [{ kind: 'fail', failure }] };
  }
  const next: Reading = {
    ...reading,
    connection: { kind: 'down', lossMs, tries: tries + 1 },
    pause: reading.pause === null ? null : { ...reading.pause, isStale: true },
  };
  const news = tell({ kind: 'disconnected', error, untilMs: lossMs + deadlineMs });
  const redial: ReadingAction = { kind: 'redial', afterMs: Math.min(pauseMs(tries), remainingMs) };
  return { reading: next, actions: connection.kind === 'up' ? [news, redial] : [redial] };
}

/** A connection that came back for a moment only, and gave nothing, was not back. */
function lossOf(connection: Connection, atMs: number): { readonly lossMs: number; readonly tries: number } {
  if (connection.kind === 'down') return connection;
  const { lossMs, sinceMs, tries } = connection;
  const isBack = lossMs === null || atMs - sinceMs >= limits.recoveryRetryMostMs;
  return isBack ? { lossMs: atMs, tries: 0 } : { lossMs, tries };
}

const pauseMs = (tries: number): number =>
  Math.min(limits.recoveryRetryMs * 2 ** Math.min(tries, 16), limits.rpcReconnectMostMs);

const refuse = (reading: Reading, error: P4Error): ReadingStep => ({
  reading,
  actions: [{ kind: 'fail', failure: { kind: 'refused', error } }],
});

const tell = (news: ReadingNews): ReadingAction => ({ kind: 'tell', news });

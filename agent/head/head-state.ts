/**
 * What the agent of a ring's head knows about its sessions and requests.
 *
 * Immutable, but for `history` and `rows`: append-only lists that only the newest state grows, shared by successive
 * states so that a token costs no copy of all tokens before it.
 */
import { assert } from '../../protocol/assert.ts';
import type { FinishReason } from '../../protocol/finish.ts';
import type { HopItem, RanRows } from '../../protocol/hop-items.ts';
import type { RequestId, SessionId, SlotIndex, TokenId } from '../../protocol/ids.ts';
import type { DecodeMode } from '../../protocol/plan.ts';
import type { Sampling } from '../../protocol/sampling.ts';
import type { CallId } from '../calls.ts';
import type { KeptReceipt } from '../records.ts';
import type { IdMap } from './id-map.ts';
import type { KeptPrefixes } from './kept-prefixes.ts';
import type { Pace } from './pace.ts';
import type { TextAssembly } from './text-assembly.ts';
import type { Vocabulary } from './vocabulary.ts';

export interface HeadState {
  readonly contextTokens: number;
  readonly decode: DecodeMode;
  readonly vocabulary: Vocabulary;
  readonly nextSession: SessionId;
  readonly nextRequest: RequestId;
  /** By slot index; `null` is free. */
  readonly slots: readonly (SessionId | null)[];
  /** Calls that wait for a slot, the oldest first. */
  readonly queue: readonly QueuedCall[];
  readonly sessions: IdMap<SessionId, SessionState>;
  /** Rows of ended sessions that stages still have. */
  readonly kept: KeptPrefixes;
  /** Running requests, and the latest `limits.keptRequests` that ended. */
  readonly requests: IdMap<RequestId, RequestState>;
  /** Items other than rows that go with the next frame, in order. */
  readonly outbox: readonly HopItem[];
  /** Frames given to the head stage that it has not finished. */
  readonly framesInFlight: number;
  readonly stages: number;
  /** Frames given to the head stage so far. */
  readonly framesSent: number;
  readonly turns: Turns;
  readonly pace: Pace;
  readonly finished: number;
  readonly emitted: number;
}

/** Rows of sessions that decode, of prompts, or a row that has to run by itself. */
export type TurnKind = 'decode' | 'prompt' | 'alone';

export interface Turns {
  /** The session that was last fed of each kind: the next frame begins with the one after it, so that none starves. */
  readonly last: Readonly<Record<TurnKind, SessionId | null>>;
  /** What the last frame with rows was for: then others have their turn. */
  readonly kind: TurnKind | null;
  /** Frames with sessions that decode since the last one with a prompt. */
  readonly decodes: number;
}

export const firstTurns: Turns = { last: { decode: null, prompt: null, alone: null }, kind: null, decodes: 0 };

/** Who waits for a session, and on whose behalf: `SessionState.owner`. */
export interface QueuedCall {
  readonly call: CallId;
  readonly owner: string | null;
}

export interface SessionState {
  readonly id: SessionId;
  readonly slot: SlotIndex;
  /** Sessions of one owner may have each other's rows; `null` for one that shares with none. */
  readonly owner: string | null;
  readonly history: TokenHistory;
  /** Tokens of the history whose rows went round the ring, and how each of them ran. */
  readonly rows: RowMarks;
  /**
   * Rows whose KV is there or on its way: all that went round, unless some were lost with a part of the ring; those run
   * again before anything new.
   */
  readonly sentRows: number;
  readonly request: RequestId | null;
  /**
   * A request that ended, whose receipts are not home: news that a stage could not run its rows may be on the way before them.
   * Until then nothing is fed.
   */
  readonly ending: RequestId | null;
}

/** A shared, append-only list and how much of it this state sees. */
export interface TokenHistory {
  readonly tokens: readonly TokenId[];
  readonly length: number;
}

/** The same for rows: whether each ran in a frame of its own, which is the shape that it has to run in again (R3). */
export interface RowMarks {
  readonly alone: readonly boolean[];
  readonly length: number;
}

export type RequestState = RunningRequest | EndingRequest | SettledRequest;

interface RequestFacts {
  readonly id: RequestId;
  readonly session: SessionId;
  readonly promptTokens: number;
  readonly emitted: number;
}

export interface RunningRequest extends RequestFacts {
  readonly kind: 'running';
  readonly sampling: Sampling;
  readonly stopStrings: readonly string[];
  readonly maxTokens: number;
  readonly ignoreEnd: boolean;
  readonly assembly: TextAssembly;
  /** What the session held when the request began: its tokens, and rows that it reuses, adopted ones with them. */
  readonly began: { readonly tokens: number; readonly rows: number };
  /** The frame with the row that samples while it is on its way: then nothing more is fed until its token comes. */
  readonly sampledBy: number | null;
  /** Whether rows from before a loss ran again with it: if it fails, its session is rebuilt from its first row. */
  readonly fedAgain: boolean;
}

/** Its `end` is on its way round; nothing more comes out. */
export interface EndingRequest extends RequestFacts {
  readonly kind: 'ending';
  readonly reason: FinishReason;
  /** What its stages will say that they ran; told to those that lost their own count. */
  readonly ran: EndedRows;
}

export type EndedRows = RanRows & { readonly reused: number };

export interface SettledRequest extends RequestFacts {
  readonly kind: 'settled';
  readonly reason: FinishReason;
  /** Empty when the ring was lost before the receipts came home. */
  readonly receipts: readonly KeptReceipt[];
}

export const historyOf = (tokens: readonly TokenId[]): TokenHistory => ({ tokens: [...tokens], length: tokens.length });

export function appendTokens(history: TokenHistory, added: readonly TokenId[]): TokenHistory {
  assert(history.tokens.length === history.length, 'only the newest view of a history grows');
  const shared = history.tokens as TokenId[];
  for (const token of added) shared.push(token);
  return { tokens: shared, length: shared.length };
}

export const marksOf = (alone: readonly boolean[]): RowMarks => ({ alone: [...alone], length: alone.length });

export function appendMarks(rows: RowMarks, count: number, alone: boolean): RowMarks {
  assert(rows.alone.length === rows.length, 'only the newest view of the marks grows');
  const shared = rows.alone as boolean[];
  for (let added = 0; added < count; added++) shared.push(alone);
  return { alone: shared, length: shared.length };
}

/** Marks as lengths of stretches: by turns of rows that ran in company and of rows that ran alone. */
export function runsOf({ alone, length }: RowMarks): readonly number[] {
  const runs = [0];
  for (let row = 0; row < length; row++) {
    const goesOn = (alone[row] === true) === (runs.length % 2 === 0);
    if (goesOn) runs[runs.length - 1] = (runs.at(-1) ?? 0) + 1;
    else runs.push(1);
  }
  return runs;
}

export const marksOfRuns = (runs: readonly number[]): RowMarks =>
  marksOf(runs.flatMap((length, turn) => Array.from({ length }, () => turn % 2 === 1)));

/** Marks of their own of the first `length` rows of others. */
export const shortenedMarks = (rows: RowMarks, length: number): RowMarks => marksOf(rows.alone.slice(0, length));

/** A history of its own with the first `length` tokens of another. */
export const shortenedHistory = (history: TokenHistory, length: number): TokenHistory =>
  historyOf(history.tokens.slice(0, length));

/** How many of a head's requests run. */
export function runningRequests(requests: ReadonlyMap<RequestId, RequestState>): number {
  let running = 0;
  for (const { kind } of requests.values()) if (kind === 'running') running += 1;
  return running;
}

/*
 * What changes with every token is written out field by field: copying with `...` costs V8 one to ten microseconds for each
 * object, and gives successive states different shapes, which makes all that reads them slower.
 */

type HeadChange = Partial<
  Pick<
    HeadState,
    'sessions' | 'kept' | 'requests' | 'outbox' | 'framesInFlight' | 'framesSent' | 'turns' | 'pace' | 'emitted'
  >
>;

/** The same head but for what `change` holds. */
export const changedHead = (head: HeadState, change: HeadChange): HeadState => ({
  contextTokens: head.contextTokens,
  decode: head.decode,
  vocabulary: head.vocabulary,
  nextSession: head.nextSession,
  nextRequest: head.nextRequest,
  slots: head.slots,
  queue: head.queue,
  sessions: change.sessions ?? head.sessions,
  kept: change.kept ?? head.kept,
  requests: change.requests ?? head.requests,
  outbox: change.outbox ?? head.outbox,
  framesInFlight: change.framesInFlight ?? head.framesInFlight,
  stages: head.stages,
  framesSent: change.framesSent ?? head.framesSent,
  turns: change.turns ?? head.turns,
  pace: change.pace ?? head.pace,
  finished: head.finished,
  emitted: change.emitted ?? head.emitted,
});

export const changedSession = (
  session: SessionState,
  change: Partial<Pick<SessionState, 'history' | 'rows' | 'sentRows'>>,
): SessionState => ({
  id: session.id,
  slot: session.slot,
  owner: session.owner,
  history: change.history ?? session.history,
  rows: change.rows ?? session.rows,
  sentRows: change.sentRows ?? session.sentRows,
  request: session.request,
  ending: session.ending,
});

export const changedRequest = (
  request: RunningRequest,
  change: Partial<Pick<RunningRequest, 'emitted' | 'assembly' | 'sampledBy' | 'fedAgain'>>,
): RunningRequest => ({
  kind: 'running',
  id: request.id,
  session: request.session,
  promptTokens: request.promptTokens,
  emitted: change.emitted ?? request.emitted,
  sampling: request.sampling,
  stopStrings: request.stopStrings,
  maxTokens: request.maxTokens,
  ignoreEnd: request.ignoreEnd,
  assembly: change.assembly ?? request.assembly,
  began: request.began,
  sampledBy: change.sampledBy === undefined ? request.sampledBy : change.sampledBy,
  fedAgain: change.fedAgain ?? request.fedAgain,
});

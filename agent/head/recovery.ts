/**
 * What a loss means for the head's sessions and requests (R1, R3): they wait, then their KV is built again from the tokens
 * that the head remembers, and they go on where they were.
 */
import type { LoadId } from '../../protocol/ids.ts';
import type { Plan } from '../../protocol/plan.ts';
import type { Effect } from '../effects.ts';
import type { JournalRecord, RequestEnded } from '../records.ts';
import {
  firstTurns,
  shortenedMarks,
  type HeadState,
  type RequestState,
  type RunningRequest,
  type SessionState,
} from './head-state.ts';
import { followed, unchangedHead, type HeadStep, type LoadAddress } from './head-step.ts';
import { IdMap } from './id-map.ts';
import { noneKept } from './kept-prefixes.ts';
import { endedRows, type HeadMemory } from './memory.ts';
import { unknownPace } from './pace.ts';
import { endRequest } from './requests.ts';
import { addPiece, emptyAssembly } from './text-assembly.ts';
import type { Vocabulary } from './vocabulary.ts';

/** The head of a ring that comes up: with what its load's sessions and requests are known to be. */
export function headOf(plan: Plan, vocabulary: Vocabulary, memory: HeadMemory): HeadState {
  const { nextSession, nextRequest, sessions, requests, finished, emitted } = memory;
  const slots: HeadState['slots'][number][] = Array.from({ length: plan.sessions }, () => null);
  for (const session of sessions.values()) slots[session.slot] = session.id;
  return {
    contextTokens: plan.contextTokens,
    decode: plan.decode,
    vocabulary,
    nextSession,
    nextRequest,
    slots,
    queue: [],
    sessions: IdMap.of(sessions),
    kept: noneKept(plan.keptPrefixes),
    requests: IdMap.of(requests),
    outbox: [],
    framesInFlight: 0,
    stages: plan.stages.length,
    framesSent: 0,
    turns: firstTurns,
    pace: unknownPace,
    finished,
    emitted,
  };
}

/** Texts of requests that ran when the head's agent ended: readers get them again from their first token. */
export function restoredTexts(head: HeadState, at: LoadAddress): HeadStep {
  let step = unchangedHead(head);
  for (const request of head.requests.values()) {
    if (request.kind === 'running') step = followed(step, restoredText(step.head, at, request));
  }
  const orphans = [...head.sessions.keys()].map((session): Effect => ({ kind: 'await-lease', of: { ...at, session } }));
  return { ...step, effects: [...step.effects, ...orphans] };
}

function restoredText(head: HeadState, at: LoadAddress, request: RunningRequest): HeadStep {
  const of = { ...at, session: request.session, request: request.id };
  const effects: Effect[] = [{ kind: 'publish-begin', of }];
  let assembly = emptyAssembly;
  for (const [index, token] of drawnTokens(head.sessions.get(request.session), request).entries()) {
    const added = addPiece(assembly, head.vocabulary.piece(token), request.stopStrings);
    assembly = added.assembly;
    effects.push({ kind: 'publish-token', of, index, token, text: added.released });
  }
  const requests = head.requests.with(request.id, { ...request, assembly });
  return { head: { ...head, requests }, records: [], effects };
}

const drawnTokens = (session: SessionState | undefined, { promptTokens, emitted }: RunningRequest) =>
  session?.history.tokens.slice(promptTokens, promptTokens + emitted) ?? [];

/** No row is on any stage any more. What is known to have run will run again, the rest as if it had never been sent. */
export function suspendedHead(head: HeadState): HeadState {
  const sessions = new Map<SessionState['id'], SessionState>();
  for (const session of head.sessions.values()) {
    const request = session.request === null ? undefined : head.requests.get(session.request);
    const rows = shortenedMarks(session.rows, ranRows(session, request));
    sessions.set(session.id, { ...session, rows, sentRows: 0, ending: null });
  }
  const requests = new Map<RequestState['id'], RequestState>();
  for (const request of head.requests.values()) {
    requests.set(request.id, request.kind === 'running' ? { ...request, sampledBy: null } : request);
  }
  const standing = { ...head, sessions: IdMap.of(sessions), requests: IdMap.of(requests) };
  return { ...standing, kept: noneKept(head.kept.most), outbox: [], framesInFlight: 0 };
}

/** Rows whose draws have come home, and with them all rows before. */
function ranRows({ rows, history }: SessionState, request: RequestState | undefined): number {
  if (request?.kind !== 'running') return rows.length;
  return Math.min(rows.length, request.emitted === 0 ? request.began.rows : history.length - 1);
}

/** Every stage is empty and the ring is whole: sessions are opened again, and requests begin where they were. */
export function recoveredHead(head: HeadState): HeadState {
  const outbox: HeadState['outbox'][number][] = [];
  for (const session of head.sessions.values()) {
    outbox.push({ kind: 'open', session: session.id, slot: session.slot });
    const request = session.request === null ? undefined : head.requests.get(session.request);
    if (request?.kind === 'running') outbox.push(beginAgain(session, request));
  }
  for (const request of head.requests.values()) {
    if (request.kind !== 'ending') continue;
    const { session, id, ran } = request;
    outbox.push({ kind: 'end', session, request: id, receipts: [], ran });
  }
  return { ...head, outbox };
}

function beginAgain(
  { id: session, slot, history }: SessionState,
  request: RunningRequest,
): HeadState['outbox'][number] {
  const { id, sampling, emitted, promptTokens, began } = request;
  const hasDrawn = emitted > 0;
  return {
    kind: 'begin',
    ...{ session, request: id, slot, sampling, reusedRows: began.rows },
    ran: hasDrawn ? { prefilled: promptTokens - began.rows, decoded: emitted - 1 } : { prefilled: 0, decoded: 0 },
    // A prompt that is not whole runs as it would have: its rows bring its tokens.
    history: history.tokens.slice(0, hasDrawn ? promptTokens : began.rows),
    drawn: history.tokens.slice(promptTokens, promptTokens + emitted),
  };
}

/** R4: the ring did not come back in time. Its requests fail; their receipts come when it does. */
export function expiredHead(head: HeadState, at: LoadAddress, detail: string): HeadStep {
  let step = unchangedHead(head);
  for (const request of head.requests.values()) {
    if (request.kind === 'running') {
      step = followed(step, endRequest(step.head, at, { request, reason: 'ring-lost', detail }));
    }
  }
  return { ...step, head: { ...step.head, outbox: [] } };
}

/** The same where no head is up: only the journal is told. */
export function expiredMemory(
  memory: HeadMemory,
  load: LoadId,
  detail: string,
): { readonly memory: HeadMemory; readonly records: readonly JournalRecord[] } {
  const records: RequestEnded[] = [];
  const requests = new Map(memory.requests);
  const sessions = new Map(memory.sessions);
  for (const request of memory.requests.values()) {
    const session = memory.sessions.get(request.session);
    if (request.kind !== 'running' || session === undefined) continue;
    const ended = endedWithoutHead(session, request, { load, detail });
    records.push(ended);
    const { id, promptTokens, emitted } = request;
    const ran = endedRows({ promptTokens, reused: ended.reused, rows: ended.heldRows });
    requests.set(id, {
      kind: 'ending',
      ...{ id, session: session.id, promptTokens, emitted, reason: ended.reason, ran },
    });
    sessions.set(session.id, { ...session, request: null });
  }
  return { memory: { ...memory, requests, sessions }, records };
}

function endedWithoutHead(
  session: SessionState,
  { id, promptTokens, began }: RunningRequest,
  { load, detail }: { readonly load: LoadId; readonly detail: string },
): RequestEnded {
  return {
    kind: 'request-ended',
    ...{ load, session: session.id, request: id, reason: 'ring-lost', detail, promptTokens, reused: began.rows },
    ...{ heldTokens: session.history.length, heldRows: session.rows.length },
    alone: session.rows.alone[session.rows.length - 1] === true,
  };
}

/** Everything that is not settled is, with what is known: nothing will run for it any more (S3). */
export function abandonedRequests(memory: HeadMemory, load: LoadId, detail: string): readonly JournalRecord[] {
  const expired = expiredMemory(memory, load, detail);
  const unsettled = [...expired.memory.requests.values()].filter(({ kind }) => kind === 'ending');
  const settled = unsettled.map(({ id: request, session, emitted }): JournalRecord => ({
    kind: 'request-settled',
    ...{ load, session, request, emitted, receipts: [] },
  }));
  return [...expired.records, ...settled];
}

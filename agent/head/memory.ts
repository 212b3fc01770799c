/**
 * What the journal says of a ring's sessions and requests: enough to go on with them wherever the head comes up again.
 *
 * Records in the order of their commits go in. Text is not in them: it is assembled anew from the tokens (`recovery.ts`).
 */
import { present } from '../../protocol/assert.ts';
import { requestId, sessionId, type RequestId, type SessionId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord, RequestAdmitted, RequestEnded, RequestSettled, TokenEmitted } from '../records.ts';
import {
  appendMarks,
  appendTokens,
  historyOf,
  marksOf,
  marksOfRuns,
  shortenedHistory,
  shortenedMarks,
  type EndedRows,
  type RequestState,
  type SessionState,
} from './head-state.ts';
import { emptyAssembly } from './text-assembly.ts';

export interface HeadMemory {
  /** The ids that the load's next session and request get: none of a load is ever used twice (E1). */
  readonly nextSession: SessionId;
  readonly nextRequest: RequestId;
  /** Those that are open; no row of theirs is on any stage. */
  readonly sessions: ReadonlyMap<SessionId, SessionState>;
  /** Those that run or whose receipts are not home, and the latest that are settled. */
  readonly requests: ReadonlyMap<RequestId, RequestState>;
  readonly finished: number;
  readonly emitted: number;
}

export const emptyMemory: HeadMemory = {
  nextSession: sessionId(1),
  nextRequest: requestId(1),
  sessions: new Map(),
  requests: new Map(),
  finished: 0,
  emitted: 0,
};

/** Takes in one load's records; mutable, because a long journal is read once and at a stretch. */
export class HeadRecall {
  readonly #sessions = new Map<SessionId, SessionState>();
  readonly #requests = new Map<RequestId, RequestState>();
  #nextSession: number;
  #nextRequest: number;
  #finished = 0;
  #emitted = 0;

  /** @param highest the highest ids that the load has used, those with it whose records are not kept any more */
  constructor(highest: { readonly session: number; readonly request: number }) {
    this.#nextSession = highest.session + 1;
    this.#nextRequest = highest.request + 1;
  }

  get memory(): HeadMemory {
    return {
      nextSession: sessionId(this.#nextSession),
      nextRequest: requestId(this.#nextRequest),
      sessions: new Map(this.#sessions),
      requests: new Map(this.#requests),
      finished: this.#finished,
      emitted: this.#emitted,
    };
  }

  add(record: JournalRecord): void {
    switch (record.kind) {
      case 'session-opened': {
        const { session: id, slot } = record;
        // Whose it is, nobody remembers: what it leaves is not kept.
        const empty = {
          owner: null,
          history: historyOf([]),
          rows: marksOf([]),
          sentRows: 0,
          request: null,
          ending: null,
        };
        this.#sessions.set(id, { id, slot, ...empty });
        this.#nextSession = Math.max(this.#nextSession, id + 1);
        return;
      }
      case 'session-closed':
        this.#sessions.delete(record.session);
        return;
      case 'request-admitted':
        this.#admit(record);
        return;
      case 'token-emitted':
        this.#emit(record);
        return;
      case 'request-ended':
        this.#end(record);
        return;
      case 'request-settled':
        this.#settle(record);
        return;
      case 'load-admitted':
      case 'load-told':
      case 'node-changed':
      case 'ring-ready':
      case 'ring-suspended':
      case 'load-ended':
    }
  }

  #admit(record: RequestAdmitted): void {
    const { session: id, request, prompt, sampling, stopStrings, maxTokens, ignoreEnd, adopted } = record;
    this.#nextRequest = Math.max(this.#nextRequest, request + 1);
    const session = present(this.#sessions.get(id), 'a request is admitted into an open session');
    const rows = adopted === undefined ? session.rows : marksOfRuns(adopted);
    const began = { tokens: session.history.length, rows: rows.length };
    const history = appendTokens(session.history, prompt);
    this.#sessions.set(id, { ...session, history, rows, request });
    this.#requests.set(request, {
      kind: 'running',
      ...{ id: request, session: id, promptTokens: history.length, emitted: 0 },
      ...{ sampling, stopStrings, maxTokens, ignoreEnd, began },
      assembly: emptyAssembly,
      sampledBy: null,
      fedAgain: false,
    });
  }

  #emit({ session: id, request: number, token, alone }: TokenEmitted): void {
    const session = this.#sessions.get(id);
    const request = this.#requests.get(number);
    if (session === undefined || request?.kind !== 'running') return;
    // The row that drew it is the last that had run: the prompt's, or the token's before.
    const before = appendMarks(session.rows, session.history.length - session.rows.length - 1, false);
    const rows = appendMarks(before, 1, alone);
    this.#sessions.set(id, { ...session, rows, history: appendTokens(session.history, [token]) });
    this.#requests.set(number, { ...request, emitted: request.emitted + 1 });
    this.#emitted += 1;
  }

  #end(record: RequestEnded): void {
    const { session: id, request: number, reason, promptTokens, heldTokens, heldRows } = record;
    const session = this.#sessions.get(id);
    if (session?.request === number) {
      const history = shortenedHistory(session.history, heldTokens);
      const rows = withLength(session.rows, heldRows, record.alone);
      this.#sessions.set(id, { ...session, history, rows, request: null });
    }
    const request = this.#requests.get(number);
    if (request?.kind === 'settled') return;
    const emitted = request?.emitted ?? 0;
    const ran = endedRows({ promptTokens, reused: record.reused, rows: heldRows });
    this.#requests.set(number, {
      kind: 'ending',
      ...{ id: number, session: id, promptTokens, emitted, reason, ran },
    });
  }

  #settle({ session, request: id, receipts, emitted }: RequestSettled): void {
    const request = this.#requests.get(id);
    if (request === undefined || request.kind === 'settled') return;
    const { promptTokens } = request;
    // Of a repaired journal the end may be lost: then what it held is not known either, and its session is closed (J6).
    const reason = request.kind === 'ending' ? request.reason : 'journal-failed';
    const holder = this.#sessions.get(session);
    if (holder?.request === id) this.#sessions.set(session, { ...holder, request: null });
    this.#requests.set(id, { kind: 'settled', id, session, promptTokens, emitted, reason, receipts });
    this.#finished += 1;
    if (this.#requests.size <= limits.keptRequests) return;
    for (const [oldest, { kind }] of this.#requests) {
      if (kind !== 'settled') continue;
      this.#requests.delete(oldest);
      return;
    }
  }
}

/** What every stage ran for a request that ended when the session's first `rows` rows had gone round. */
export function endedRows(of: { promptTokens: number; reused: number; rows: number }): EndedRows {
  const { promptTokens, reused, rows } = of;
  const prefilled = Math.max(0, Math.min(rows, promptTokens) - reused);
  return { prefilled, decoded: Math.max(0, rows - promptTokens), reused };
}

/** Rows beyond those whose shape was written down ran in a prompt's chunk; of the last one, it was. */
function withLength(rows: SessionState['rows'], length: number, lastAlone: boolean): SessionState['rows'] {
  if (rows.length >= length) return shortenedMarks(rows, length);
  return appendMarks(appendMarks(rows, length - rows.length - 1, false), 1, lastAlone);
}

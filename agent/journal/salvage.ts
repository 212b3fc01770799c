/**
 * What of a damaged journal can stand in a new one, decided from its whole records alone (J6): nothing that was kept may
 * say less than it said, so what lost a part of its meaning goes with a word about it.
 *
 * - A load without its admission is not known by anything else.
 * - A text with a gap is none. Of a request that ran, what came before the gap is still true, and is drawn again from
 *   there; of one that ended, the text goes, its end and settlement stay.
 * - A session that was open when something was lost may lack requests that nobody can name: it is closed.
 * - A request whose session is closed, then or by the repair, and whose end is lost runs no more: it is ended.
 */
import { requestId, sessionId, type LoadId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord } from '../records.ts';
import { admittedLoad, decodeRecord, kindOf, type Row } from './record-codec.ts';
import type { LostRecords } from './scan.ts';
import type { ExpiredIds } from './store.ts';

/** What a repair could not save, or had to end. */
export interface Sacrifice {
  /** Numbers of the admissions of loads that are not there; what is left of such a load goes. */
  readonly lostLoads: readonly number[];
  /** Requests, `<load id> <request>`, whose text goes, whole or from a token on. */
  readonly cutRequests: readonly string[];
  /** Sessions, `<load id> <session>`, that are closed. */
  readonly closedSessions: readonly string[];
}

interface SalvagedRequest {
  readonly session: number;
  /** Number of its admission, 0 for none. */
  admitted: number;
  /** Tokens from index 0 on without a gap. */
  tokens: number;
  /** Number of the first token behind a gap; Infinity for none. */
  gapAt: number;
  /** Number of its end or, without one, of its settlement; 0 while it runs. */
  ended: number;
  /** Tokens it emitted, as its settlement says. */
  emitted: number | null;
  promptTokens: number;
}

interface SalvagedSession {
  opened: number;
  isClosed: boolean;
}

interface SalvagedLoad {
  readonly id: LoadId;
  isEnded: boolean;
  readonly sessions: Map<number, SalvagedSession>;
  readonly requests: Map<number, SalvagedRequest>;
}

export class Salvage {
  readonly #loads = new Map<number, SalvagedLoad>();
  readonly #lostLoads = new Set<number>();
  #lost: readonly LostRecords[] = [];

  /** Takes note of a whole record: all of them, in order. */
  note(row: Row): void {
    const id = admittedLoad(row);
    if (id !== null) this.#loads.set(row.load, { id, isEnded: false, sessions: new Map(), requests: new Map() });
    const load = this.#loads.get(row.load);
    const record = load === undefined ? null : decodeRecord(row, load.id);
    if (load === undefined || record === null) this.#lostLoads.add(row.load);
    else noteRecord(load, record, row.number);
  }

  /** Takes note of what is lost, after all whole records and before anything is asked. */
  noteLost(lost: readonly LostRecords[]): void {
    this.#lost = lost;
  }

  /** Whether a whole record stands in the new journal. */
  keeps(row: Row): boolean {
    const load = this.#loads.get(row.load);
    if (load === undefined) return false;
    const kind = kindOf(row);
    if (kind !== 'request-admitted' && kind !== 'token-emitted') return true;
    const request = load.requests.get(row.request ?? 0);
    return request !== undefined && !this.#losesText(load, request) && row.number < request.gapAt;
  }

  /**
   * The highest ids of each load: those of records that are there or had their time and, above them, as many as lost
   * records may have borne, so that none is given to another (E1).
   */
  highestIds(expired: readonly ExpiredIds[]): readonly ExpiredIds[] {
    const former = new Map(expired.map((ids) => [ids.load, ids]));
    const lostNumbers = this.#lost.reduce((sum, { from, to }) => sum + to - from + 1, 0);
    const lostIds = Math.min(limits.journalLostIds, lostNumbers);
    return [...this.#loads].flatMap(([load, { isEnded, sessions, requests }]) => {
      const above = isEnded ? 0 : lostIds;
      const session = Math.max(former.get(load)?.session ?? 0, highest(sessions.keys())) + above;
      const request = Math.max(former.get(load)?.request ?? 0, highest(requests.keys())) + above;
      return above > 0 || former.has(load) ? [{ load, session, request }] : [];
    });
  }

  /** Records that end, in the new journal, what cannot go on. */
  endings(): readonly JournalRecord[] {
    return [...this.#loads.values()].flatMap((load) => endingsOf(load, doubtfulSessions(load, this.#lost)));
  }

  sacrifice(): Sacrifice {
    const loads = [...this.#loads.values()];
    return {
      lostLoads: [...this.#lostLoads],
      cutRequests: loads.flatMap((load) =>
        [...load.requests]
          .filter(([, request]) => request.gapAt !== Infinity || (hadText(request) && this.#losesText(load, request)))
          .map(([request]) => `${load.id} ${request}`),
      ),
      closedSessions: loads.flatMap((load) =>
        doubtfulSessions(load, this.#lost).map((session) => `${load.id} ${session}`),
      ),
    };
  }

  /** A text without its beginning, without its session, or of a request that ended and of which a token is not there. */
  #losesText(load: SalvagedLoad, { admitted, ended, gapAt, emitted, tokens, session }: SalvagedRequest): boolean {
    if (admitted === 0 || (load.sessions.get(session)?.opened ?? 0) === 0) return true;
    if (ended === 0) return false;
    if (emitted !== null) return emitted !== tokens;
    return gapAt !== Infinity || this.#lost.some(({ from, to }) => to > admitted && from < ended);
  }
}

const highest = (ids: Iterable<number>): number => {
  let found = 0;
  for (const id of ids) found = Math.max(found, id);
  return found;
};

function noteRecord(load: SalvagedLoad, record: JournalRecord, number: number): void {
  switch (record.kind) {
    case 'load-ended':
      load.isEnded = true;
      return;
    case 'session-opened':
      load.sessions.set(record.session, { opened: number, isClosed: false });
      return;
    case 'session-closed':
      sessionIn(load, record.session).isClosed = true;
      return;
    case 'load-admitted':
    case 'load-told':
    case 'node-changed':
    case 'ring-ready':
    case 'ring-suspended':
      return;
    case 'request-admitted':
    case 'token-emitted':
    case 'request-ended':
    case 'request-settled':
      noteRequest(requestIn(load, record), record, number);
  }
}

function noteRequest(
  request: SalvagedRequest,
  record: Extract<JournalRecord, { readonly request: unknown }>,
  number: number,
): void {
  switch (record.kind) {
    case 'request-admitted':
      request.admitted = number;
      request.promptTokens = record.prompt.length;
      return;
    case 'token-emitted':
      if (record.index === request.tokens && request.gapAt === Infinity) request.tokens += 1;
      else request.gapAt = Math.min(request.gapAt, number);
      return;
    case 'request-ended':
      request.ended = number;
      return;
    case 'request-settled':
      request.ended = request.ended === 0 ? number : request.ended;
      request.emitted = record.emitted;
      return;
  }
}

function sessionIn({ sessions }: SalvagedLoad, session: number): SalvagedSession {
  const known = sessions.get(session) ?? { opened: 0, isClosed: false };
  sessions.set(session, known);
  return known;
}

function requestIn(
  load: SalvagedLoad,
  { request, session }: { readonly request: number; readonly session: number },
): SalvagedRequest {
  sessionIn(load, session);
  const known = load.requests.get(request) ?? {
    ...{ session, admitted: 0, tokens: 0, gapAt: Infinity, ended: 0, emitted: null, promptTokens: 0 },
  };
  load.requests.set(request, known);
  return known;
}

const hadText = ({ admitted, tokens, gapAt }: SalvagedRequest): boolean =>
  admitted !== 0 || tokens > 0 || gapAt !== Infinity;

/** Sessions of a standing load that were open when something was lost. */
function doubtfulSessions(load: SalvagedLoad, lost: readonly LostRecords[]): readonly number[] {
  if (load.isEnded) return [];
  const open = [...load.sessions].filter(([, { isClosed }]) => !isClosed);
  return open.filter(([, { opened }]) => lost.some(({ to }) => to > opened)).map(([session]) => session);
}

/** Of a load: ends of requests that have none and whose session is closed, now or by what comes then: the ends of others. */
function endingsOf(load: SalvagedLoad, doubtful: readonly number[]): readonly JournalRecord[] {
  if (load.isEnded) return [];
  const closing = new Set(doubtful);
  const isOver = (session: number): boolean => closing.has(session) || load.sessions.get(session)?.isClosed === true;
  const running = [...load.requests].filter(([, { ended, session }]) => ended === 0 && isOver(session));
  const ends = running.map(([request, { session, promptTokens }]): JournalRecord => {
    const of = { load: load.id, session: sessionId(session), request: requestId(request) };
    const held = { promptTokens, reused: 0, heldTokens: 0, heldRows: 0, alone: false };
    return { kind: 'request-ended', ...of, reason: 'journal-failed', detail: 'JOURNAL_CORRUPT', ...held };
  });
  const closes = doubtful.map((session): JournalRecord => ({
    kind: 'session-closed',
    ...{ load: load.id, session: sessionId(session) },
  }));
  return [...ends, ...closes];
}

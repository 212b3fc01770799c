/**
 * What has had its time (J4), as sweeps over ranges of record numbers.
 *
 * - Token ids, a request's admission among them, stay while its session is open and `limits.journalRetainSeconds` after.
 * - `request-ended` and `request-settled` stay `limits.journalSettlementSeconds` after they were written, and at least as
 *   long as the token ids.
 * - A session's records go when all its requests' token ids have gone; a load's when it has ended, nothing else of it is
 *   left, and its end is as old as a settlement gets. Of what is said of a ring again and again, the latest stays.
 *
 * What a sweep takes is taken out of the ledger as the sweep is given out, before anything is deleted: no reader that
 * comes later sees half of it. A sweep that was cut off is found again when the journal is next opened: it goes from low
 * numbers to high, so the record that closed a session, or ended a load, goes last.
 */
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord } from '../records.ts';
import type { Ledger } from './ledger.ts';
import type { LoadHistory } from './load-history.ts';
import { kindOf, type Row } from './record-codec.ts';
import type { TabledRequest } from './request-table.ts';

/** Numbers of records, both ends included. */
export interface NumberRange {
  readonly from: number;
  readonly to: number;
}

export type Sweep =
  | {
      readonly kind: 'ranges';
      readonly load: number;
      /** Apart, in order. */
      readonly ranges: readonly NumberRange[];
      /** Whether a row in these ranges goes. */
      readonly takes: (row: Row) => boolean;
    }
  /** The admission and the end of a load: they go together, or the load would stand again, or have no admission. */
  | { readonly kind: 'load'; readonly load: number; readonly ended: number };

export interface RetentionTime {
  /** Seconds since 1970. */
  readonly now: number;
  /** Number of the last durable record. */
  readonly lastRecord: number;
}

/** Sweeps, each to be carried out before the next is asked for. */
export function* expiredSweeps(ledger: Ledger, time: RetentionTime): Generator<Sweep, void, undefined> {
  for (const history of ledger.histories()) {
    const holding = new Set<number>();
    yield* requestSweeps(history, time, holding);
    yield* sessionSweep(history, time, holding);
    yield* ownSweep(history, time);
    const ended = endedLongAgo(history, time);
    if (ended === null || !isBare(history)) continue;
    ledger.forget(history.number);
    yield { kind: 'load', load: history.number, ended };
  }
}

/** @param holding takes the sessions of which token ids stay */
function* requestSweeps(
  history: LoadHistory,
  time: RetentionTime,
  holding: Set<number>,
): Generator<Sweep, void, undefined> {
  const { requests } = history;
  for (let next = 0; ;) {
    const texts = new Set<number>();
    const endings = new Set<number>();
    const ranges: NumberRange[] = [];
    const first = requests.indexFrom(next);
    const end = Math.min(first + limits.journalSweepRequests, requests.count);
    if (first >= end) return;
    for (let index = first; index < end; index++) {
      const request = requests.at(index);
      next = request.request + 1;
      const goes = isTextExpired(history, request, time);
      if (request.text !== 0 && !goes) {
        holding.add(request.session);
        continue;
      }
      if (request.text !== 0) {
        texts.add(request.request);
        ranges.push({ from: request.text, to: request.ended || history.lastOf(request, time.lastRecord) });
      }
      if (!isEndingExpired(history, request, time)) continue;
      endings.add(request.request);
      for (const number of [request.ended, request.settled]) if (number !== 0) ranges.push(only(number));
    }
    for (const request of texts) requests.textGone(request);
    if (endings.size > 0) requests.drop((request) => endings.has(request), { from: first, to: end });
    const takes = (row: Row): boolean => {
      const kind = kindOf(row);
      if (kind === 'request-admitted' || kind === 'token-emitted') return texts.has(row.request ?? 0);
      return isEnding(kind) && endings.has(row.request ?? 0);
    };
    yield sweepOf(history, ranges, takes); // Without a range as well: the event loop runs between two sweeps.
  }
}

function isTextExpired(history: LoadHistory, request: TabledRequest, time: RetentionTime): boolean {
  // Its session went first only if a sweep was cut off: what is left over goes, too.
  const session = history.sessions.get(request.session);
  if (session === undefined && !request.isWhole) return true;
  if (request.ended === 0 && history.ending === null) return false;
  return isPast(closingOf(history, request.session), limits.journalRetainSeconds, time);
}

/**
 * Whether nobody may ask for its settlement any more. A consumer's acknowledgement, once there is such a call, makes it
 * true at once.
 */
function isEndingExpired({ ending }: LoadHistory, request: TabledRequest, time: RetentionTime): boolean {
  if (request.endedAt === 0) return ending !== null;
  const number = Math.max(request.ended, request.settled);
  return isPast({ number, at: request.endedAt }, limits.journalSettlementSeconds, time);
}

function* sessionSweep(
  history: LoadHistory,
  time: RetentionTime,
  holding: ReadonlySet<number>,
): Generator<Sweep, void, undefined> {
  const gone = new Set<number>();
  const ranges: NumberRange[] = [];
  for (const [session, { opened, closed }] of history.sessions) {
    if (holding.has(session) || !isPast(closingOf(history, session), limits.journalRetainSeconds, time)) continue;
    gone.add(session);
    for (const number of [opened, closed?.number ?? 0]) if (number !== 0) ranges.push(only(number));
  }
  if (gone.size === 0) return;
  for (const session of gone) history.sessions.delete(session);
  const takes = (row: Row): boolean => isOfSession(kindOf(row)) && gone.has(row.session ?? 0);
  yield sweepOf(history, ranges, takes);
}

function* ownSweep(history: LoadHistory, time: RetentionTime): Generator<Sweep, void, undefined> {
  const latest = new Map(history.own.map(({ about, number }) => [about, number]));
  const isOver = endedLongAgo(history, time) !== null && history.requests.count === 0 && history.sessions.size === 0;
  const gone = history.own.filter(
    ({ about, ...noted }) =>
      isOver || (latest.get(about) !== noted.number && isPast(noted, limits.journalSettlementSeconds, time)),
  );
  if (gone.length === 0) return;
  const numbers = new Set(gone.map(({ number }) => number));
  history.dropOwn((number) => numbers.has(number));
  yield sweepOf(history, [...numbers].map(only), (row) => numbers.has(row.number));
}

/** When the session was closed, by itself or with its load; `null` while it is open. */
function closingOf(history: LoadHistory, session: number): { readonly number: number; readonly at: number } | null {
  return history.sessions.get(session)?.closed ?? history.ending;
}

function endedLongAgo({ ending }: LoadHistory, time: RetentionTime): number | null {
  return ending !== null && isPast(ending, limits.journalSettlementSeconds, time) ? ending.number : null;
}

const isBare = ({ requests, sessions, own }: LoadHistory): boolean =>
  requests.count === 0 && sessions.size === 0 && own.length === 0;

function isPast(
  since: { readonly number: number; readonly at: number } | null,
  seconds: number,
  { now, lastRecord }: RetentionTime,
): boolean {
  return since !== null && since.number <= lastRecord && since.at + seconds <= now;
}

type Kind = JournalRecord['kind'] | null;
const isEnding = (kind: Kind): boolean => kind === 'request-ended' || kind === 'request-settled';
const isOfSession = (kind: Kind): boolean => kind === 'session-opened' || kind === 'session-closed';

const only = (number: number): NumberRange => ({ from: number, to: number });

function sweepOf({ number: load }: LoadHistory, ranges: readonly NumberRange[], takes: (row: Row) => boolean): Sweep {
  return { kind: 'ranges', load, ranges: joined(ranges), takes: (row) => row.load === load && takes(row) };
}

/** The same numbers in order; ranges that overlap or lie near each other become one: reading on is cheaper than seeking. */
export function joined(ranges: readonly NumberRange[]): readonly NumberRange[] {
  const nearNumbers = 32;
  const result: NumberRange[] = [];
  for (const range of [...ranges].sort((one, other) => one.from - other.from)) {
    const last = result.at(-1);
    if (last === undefined || range.from > last.to + nearNumbers) result.push(range);
    else result[result.length - 1] = { from: last.from, to: Math.max(last.to, range.to) };
  }
  return result;
}

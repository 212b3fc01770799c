/**
 * What the journal knows of one load's records without reading them: where each request's lie, which sessions were
 * closed and when, and the load's own. From this a request is found, and what has had its time is told (J4).
 */
import type { LoadId, RingName } from '../../protocol/ids.ts';
import type { JournalRecord, LoadAdmitted } from '../records.ts';
import { RequestTable } from './request-table.ts';

export interface Noted {
  /** Number of the record. */
  readonly number: number;
  /** Seconds since 1970; 0 for an emitted token, which has no time of its own. */
  readonly at: number;
}

/** Numbers of its records, 0 for one that is not there. */
export interface KnownSession {
  readonly opened: number;
  readonly closed: Noted | null;
}

/** A record of the load itself: of its nodes and its ring. */
export interface OwnRecord extends Noted {
  /** What it is about: a later record about the same takes its place. */
  readonly about: string;
}

export interface HighestIds {
  readonly session: number;
  readonly request: number;
}

/** Where the records of a request lie: behind number `after`, up to number `through`. */
export type RequestPlace =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'found'; readonly after: number; readonly through: number; readonly isWhole: boolean };

export class LoadHistory {
  readonly load: LoadId;
  readonly ring: RingName;
  /** Number of its admission. */
  readonly number: number;
  readonly requests = new RequestTable();
  readonly sessions = new Map<number, KnownSession>();
  #admittedAt = 0;
  #own: OwnRecord[] = [];
  #ending: Noted | null = null;
  #highest: HighestIds = { session: 0, request: 0 };

  constructor({ load, ring }: LoadAdmitted, number: number) {
    this.load = load;
    this.ring = ring;
    this.number = number;
  }

  /** When it was admitted, in seconds since 1970. */
  get admittedAt(): number {
    return this.#admittedAt;
  }

  /** Its `load-ended`. */
  get ending(): Noted | null {
    return this.#ending;
  }

  /** Its own records, but for its admission and its end, oldest first. */
  get own(): readonly OwnRecord[] {
    return this.#own;
  }

  /** The highest ids that its records have borne, those included that are no longer there; 0 before the first. */
  get highest(): HighestIds {
    return this.#highest;
  }

  raise({ session, request }: HighestIds): void {
    const { session: highestSession, request: highestRequest } = this.#highest;
    if (session <= highestSession && request <= highestRequest) return;
    this.#highest = { session: Math.max(session, highestSession), request: Math.max(request, highestRequest) };
  }

  note(record: JournalRecord, noted: Noted): void {
    switch (record.kind) {
      case 'load-admitted':
        this.#admittedAt = noted.at;
        return;
      case 'load-told':
        this.#own.push({ ...noted, about: 'told' });
        return;
      case 'load-ended':
        this.#ending = noted;
        return;
      case 'node-changed':
        this.#own.push({ ...noted, about: `node ${record.node}` });
        return;
      case 'ring-suspended':
        this.#own.push({ ...noted, about: 'suspended' });
        return;
      case 'ring-ready': {
        const isFirst = this.#own.every(({ about }) => about !== 'loaded');
        this.#own.push({ ...noted, about: isFirst ? 'loaded' : 'ready again' });
        return;
      }
      case 'session-opened':
        this.raise({ session: record.session, request: 0 });
        this.sessions.set(record.session, { opened: noted.number, closed: null });
        return;
      case 'session-closed':
        this.sessions.set(record.session, { opened: this.sessions.get(record.session)?.opened ?? 0, closed: noted });
        return;
      case 'request-admitted':
      case 'token-emitted':
      case 'request-ended':
      case 'request-settled':
        this.#noteRequest(record, noted);
    }
  }

  placeOf(request: number, lastRecord: number): RequestPlace {
    const found = this.requests.find(request);
    if (found === null) return { kind: request > this.#highest.request ? 'unknown' : 'expired' };
    const { isWhole, text, ended, settled } = found;
    const first = isWhole ? text : Math.min(ended || Infinity, settled || Infinity);
    if (first === Infinity) return { kind: 'expired' };
    return { kind: 'found', after: first - 1, through: this.lastOf(found, lastRecord), isWhole };
  }

  /** Number behind which there is no record of the request. */
  lastOf({ ended, settled }: { readonly ended: number; readonly settled: number }, lastRecord: number): number {
    if (settled !== 0) return Math.max(ended, settled);
    return this.#ending === null ? lastRecord : Math.max(ended, this.#ending.number);
  }

  /** The records have gone. */
  dropOwn(isGone: (number: number) => boolean): void {
    this.#own = this.#own.filter(({ number }) => !isGone(number));
  }

  #noteRequest(record: Extract<JournalRecord, { readonly request: unknown }>, { number, at }: Noted): void {
    const { request, session } = record;
    this.raise({ session, request });
    switch (record.kind) {
      case 'request-admitted':
        this.requests.admitted(request, session, number);
        return;
      case 'token-emitted':
        this.requests.leftOver(request, session, number);
        return;
      case 'request-ended':
        this.requests.ended(request, session, { number, at });
        return;
      case 'request-settled':
        this.requests.settled(request, session, { number, at });
        return;
    }
  }
}

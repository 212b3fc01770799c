/**
 * What the journal knows of its records without reading or counting them (J3): the loads and where their records lie,
 * which of them still live, and how much room the requests that were let in may still need.
 *
 * Built from every record when the journal is opened, carried on with each record that is committed.
 */
import { assert, present } from '../../protocol/assert.ts';
import type { LoadId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord, LoadAdmitted, RequestAdmitted, SessionOpened } from '../records.ts';
import { LoadHistory, type Noted } from './load-history.ts';
import type { Row } from './record-codec.ts';

/** Records that promise others: after them, records that end what they began must still fit. */
export type Admission = LoadAdmitted | SessionOpened | RequestAdmitted;

/** Bytes that a row takes in the file, apart from the body, with room: the longest token row takes some 50. */
const rowBytes = 64;
/** Node changes, a ring's readiness and end, its terms told anew, the closing of its sessions: what a load adds after its admission. */
const loadEndingBytes = 256 * 1024;
/** The end and the settlement of a request: a receipt of about 150 bytes for each stage. */
const requestEndingBytes = 1024 + limits.stages * 192;

export interface NotedOfLoad extends Noted {
  readonly load: number;
}

export class Ledger {
  readonly #numbers = new Map<LoadId, number>();
  readonly #histories = new Map<number, LoadHistory>();
  /** By number of each load that has not ended: bytes its requests may still write. */
  readonly #live = new Map<number, Map<number, number>>();
  #reservedBytes = 0;

  get reservedBytes(): number {
    return this.#reservedBytes;
  }

  /** Number of the load's `load-admitted` record. */
  numberOf(load: LoadId): number | undefined {
    return this.#numbers.get(load);
  }

  loadOf(number: number): LoadId | undefined {
    return this.#histories.get(number)?.load;
  }

  /** Of the load that goes by this number. */
  history(number: number): LoadHistory | undefined {
    return this.#histories.get(number);
  }

  /** Of all loads of which there are records, oldest first. */
  histories(): readonly LoadHistory[] {
    return [...this.#histories.values()];
  }

  /** Whether the load has not ended. */
  isLive(number: number): boolean {
    return this.#live.has(number);
  }

  /** Numbers of the loads that have not ended, oldest first. */
  liveLoads(): readonly number[] {
    return [...this.#live.keys()];
  }

  /** Takes note of a record that the journal holds or is about to write. `load` is the number of its load. */
  note(record: JournalRecord, noted: NotedOfLoad): void {
    const { load } = noted;
    if (record.kind === 'load-admitted') this.#admit(record, load);
    // Most records are tokens of a request that is known well.
    if (record.kind === 'token-emitted' && this.#use(load, record.request)) return;
    this.#histories.get(load)?.note(record, noted);
    this.#account(record, load);
  }

  /** What is kept free for records that must follow. */
  #account(record: JournalRecord, load: number): void {
    switch (record.kind) {
      case 'load-ended':
        this.#endLoad(load);
        return;
      case 'request-admitted':
        this.#reserve(load, record.request, promisedBytes(record));
        return;
      case 'request-settled':
        this.#release(load, record.request);
        return;
      case 'load-admitted':
      case 'load-told':
      case 'token-emitted':
      case 'node-changed':
      case 'ring-ready':
      case 'ring-suspended':
      case 'session-opened':
      case 'session-closed':
      case 'request-ended':
        return;
    }
  }

  /** The load's last records have gone. */
  forget(number: number): void {
    const load = this.loadOf(number);
    this.#histories.delete(number);
    if (load !== undefined && this.#numbers.get(load) === number) this.#numbers.delete(load);
  }

  #admit(record: LoadAdmitted, number: number): void {
    const { load } = record;
    // One that was ended may come again: it is a new load with a number of its own.
    assert(!this.#live.has(this.#numbers.get(load) ?? -1), 'a load that stands is not admitted again');
    this.#numbers.set(load, number);
    this.#histories.set(number, new LoadHistory(record, number));
    this.#live.set(number, new Map());
    this.#reservedBytes += loadEndingBytes;
  }

  #reserve(load: number, request: number, bytes: number): void {
    const requests = this.#live.get(load);
    if (requests === undefined || requests.has(request)) return;
    requests.set(request, bytes);
    this.#reservedBytes += bytes;
  }

  /** Whether the request runs. */
  #use(load: number, request: number): boolean {
    const requests = this.#live.get(load);
    const left = requests?.get(request);
    if (requests === undefined || left === undefined) return false;
    if (left < requestEndingBytes + rowBytes) return true;
    requests.set(request, left - rowBytes);
    this.#reservedBytes -= rowBytes;
    return true;
  }

  #release(load: number, request: number): void {
    const requests = this.#live.get(load);
    this.#reservedBytes -= requests?.get(request) ?? 0;
    requests?.delete(request);
  }

  #endLoad(load: number): void {
    const requests = this.#live.get(load);
    if (requests === undefined) return;
    for (const request of [...requests.keys()]) this.#release(load, request);
    this.#live.delete(load);
    this.#reservedBytes -= loadEndingBytes;
  }
}

/** Bytes that a row counts for. */
export const recordBytes = (row: Row): number => rowBytes + (row.body === null ? 0 : Buffer.byteLength(row.body));

/** Upper bound in bytes of what an admission writes at once and promises for later. */
export function admissionBytes(record: Admission): number {
  switch (record.kind) {
    case 'load-admitted':
      return rowBytes + 1024 + record.assignment.length * 2 + loadEndingBytes;
    case 'session-opened':
      return 2 * (rowBytes + 64);
    case 'request-admitted':
      return rowBytes + requestBodyBytes(record) + promisedBytes(record);
  }
}

function requestBodyBytes({ prompt, sampling, stopStrings }: RequestAdmitted): number {
  const tokenDigits = 11;
  const texts = (sampling.grammar ?? '').length + stopStrings.reduce((sum, text) => sum + text.length, 0);
  return 2048 + prompt.length * tokenDigits + sampling.logitBias.length * 48 + texts * 6;
}

function promisedBytes({ maxTokens }: RequestAdmitted): number {
  return maxTokens * rowBytes + requestEndingBytes;
}

/** The load id behind a number that a record of this journal bears. */
export const knownLoad = (ledger: Ledger, number: number): LoadId =>
  present(ledger.loadOf(number), 'a record stands behind the admission of its load');

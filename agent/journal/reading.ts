/** Reading an open journal: all that stands, or one request, in pages between which commits go on. */
import { assert } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { LoadId, RequestId } from '../../protocol/ids.ts';
import type { JournalRecord } from '../records.ts';
import { knownLoad, type Ledger } from './ledger.ts';
import type { LoadHistory } from './load-history.ts';
import type { OpenedJournal } from './opening.ts';
import { decodeRecord, type Row } from './record-codec.ts';
import { readRequestRows, readRows, type BodySource } from './record-pages.ts';

export interface ReadJournal {
  readonly folder: string;
  /** Throws the failure of a journal that failed. */
  readonly files: () => OpenedJournal;
  /** Number of the last durable record. */
  readonly lastRecord: () => number;
  /** One read on the connection, between transactions. */
  readonly read: <Value>(work: (files: OpenedJournal) => Promise<Value>) => Promise<Value>;
}

export class JournalReader {
  readonly #journal: ReadJournal;
  #readers = 0;

  constructor(journal: ReadJournal) {
    this.#journal = journal;
  }

  /** Readings under way. */
  get readers(): number {
    return this.#readers;
  }

  /** As `Journal.replay` says. */
  async *replay(): AsyncGenerator<JournalRecord, void, undefined> {
    const { ledger } = this.#journal.files();
    const through = this.#journal.lastRecord();
    const live = ledger.liveLoads();
    const lives = new Set(live);
    const source = {
      ...this.#bodies(),
      page: (after: number) => this.#journal.read(({ store }) => store.page(after, through)),
    };
    yield* this.#counted(async function* () {
      for await (const row of readRows(source, (live[0] ?? through + 1) - 1)) {
        if (!lives.has(row.load)) continue;
        const record = knownRecord(row, ledger);
        if (!isExpired(record, ledger.history(row.load))) yield record;
      }
    });
  }

  /** As `Journal.requestRecords` says. */
  async *requestRecords(id: LoadId, request: RequestId): AsyncGenerator<JournalRecord, void, undefined> {
    const { ledger } = this.#journal.files();
    const lastRecord = this.#journal.lastRecord();
    const load = ledger.numberOf(id);
    const place = load === undefined ? undefined : ledger.history(load)?.placeOf(request, lastRecord);
    if (load === undefined || place === undefined || place.kind === 'unknown') return;
    if (place.kind === 'expired') throw new P4Error('REQUEST_EXPIRED', { load: id, request });
    const of = { load, request };
    const source = {
      ...this.#bodies(),
      page: (after: number, through: number) =>
        this.#journal.read(({ store }) => store.requestPage(after, through, of)),
    };
    const { after, isWhole } = place;
    const through = Math.min(place.through, lastRecord);
    yield* this.#counted(async function* () {
      for await (const row of readRequestRows(source, { after, through })) {
        const record = knownRecord(row, ledger);
        if (isWhole || record.kind === 'request-ended' || record.kind === 'request-settled') yield record;
      }
    });
  }

  #bodies(): BodySource {
    const { folder, read } = this.#journal;
    return { folder, body: (number) => read(({ store }) => store.body(number)) };
  }

  /** Compaction takes nothing away from under one that is counted. */
  async *#counted<Value>(read: () => AsyncGenerator<Value>): AsyncGenerator<Value, void, undefined> {
    this.#readers += 1;
    try {
      yield* read();
    } finally {
      this.#readers -= 1;
    }
  }
}

function knownRecord(row: Row, ledger: Ledger): JournalRecord {
  const record = decodeRecord(row, knownLoad(ledger, row.load));
  assert(record !== null, 'every kind was known when the journal was opened');
  return record;
}

/** Whether it belongs to a session or a request of which token ids have gone (J4). */
function isExpired(record: JournalRecord, history: LoadHistory | undefined): boolean {
  if ('request' in record) return history?.requests.find(record.request)?.isWhole !== true;
  if ('session' in record) return (history?.sessions.get(record.session)?.opened ?? 0) === 0;
  return false;
}

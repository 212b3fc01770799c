/**
 * The journal over its SQLite file: commits, reading and upkeep take turns on the one connection.
 */
import { assert } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { JournalReport } from '../../protocol/host-order.ts';
import type { LoadId, RequestId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { HopTrail, JournalRecord } from '../records.ts';
import { CommitQueue, type Batch } from './commit-queue.ts';
import { Compaction, type CompactedJournal, type Taken } from './compaction.ts';
import { admissionLimitBytes } from './database-limit.ts';
import type { Failpoint } from './failpoint.ts';
import { writingFailure } from './failure.ts';
import { GatheredHops, keptHop, type KeptHop } from './hop-trail.ts';
import type { AdmissionAnswer, Journal, JournalOptions, JournalStats } from './journal.ts';
import { loadsOf } from './journal-report.ts';
import { admissionBytes, recordBytes, type Admission } from './ledger.ts';
import type { HighestIds } from './load-history.ts';
import { openFiles, type OpenedJournal } from './opening.ts';
import { encodeRecord, rowText } from './record-codec.ts';
import { JournalReader } from './reading.ts';
import { pageBytes, type DatabaseSize, type Kept, type Store } from './store.ts';
import { Turns } from './turns.ts';

type State =
  | { readonly kind: 'open'; readonly files: OpenedJournal }
  /** `files` is `null` when reopening failed. */
  | { readonly kind: 'failed'; readonly error: P4Error; readonly files: OpenedJournal | null }
  | { readonly kind: 'closed' };

export class SqliteJournal implements Journal {
  readonly #options: JournalOptions & { readonly failpoint: Failpoint };
  readonly #turns = new Turns();
  readonly #reader: JournalReader;
  readonly #compaction: Compaction;
  readonly #compactionTimer = setInterval(() => void this.compact(), limits.journalCompactionMs);
  readonly #queue: CommitQueue;
  #state: State;
  #gatheredHops: GatheredHops;
  /** Up to the last record that `commit` was given, up to the last durable one, and as the file has it. */
  #taken: Kept;
  #durable: Kept;
  #kept: Kept;
  /** As measured when the durable records had so many bytes. */
  #size: DatabaseSize & { readonly atRecordBytes: number };
  #walBytes = 0;
  #transactions = 0;
  #checkpoints = 0;
  #isWritingHops = false;
  #listener: (error: P4Error) => void = () => undefined;
  #madeRoomAt = 0;

  constructor(options: JournalOptions & { readonly failpoint: Failpoint }, files: OpenedJournal) {
    this.#options = options;
    this.#queue = new CommitQueue({
      write: (batch) => this.#turns.take(() => this.#transaction(batch)),
      gatherMs: options.gatherMs ?? limits.journalGatherMs,
    });
    this.#state = { kind: 'open', files };
    this.#gatheredHops = new GatheredHops(files.lastHop);
    this.#taken = this.#durable = this.#kept = files.kept;
    this.#size = { ...files.size, atRecordBytes: files.kept.bytes };
    this.#reader = new JournalReader({
      folder: options.folder,
      files: () => this.#readableFiles(),
      lastRecord: () => this.#durable.through,
      read: (work) => this.#read(work),
    });
    this.#compaction = new Compaction(this.#compacted());
    this.#compactionTimer.unref();
  }

  commit(records: readonly JournalRecord[]): Promise<void> {
    const state = this.#state;
    assert(state.kind !== 'closed', 'nothing is committed to a closed journal');
    if (state.kind === 'failed') return Promise.reject(state.error);
    if (this.#queue.waitingRows + records.length > limits.journalWaitingRecords)
      return Promise.reject(this.#fail(this.#stalled()));
    const at = Math.floor(this.#now() / 1000);
    let { records: count, bytes, through } = this.#taken;
    const rows = records.map((record) => {
      const number = (through += 1);
      const load = record.kind === 'load-admitted' ? number : state.files.ledger.numberOf(record.load);
      assert(load !== undefined, 'a load is admitted before anything else of it is recorded');
      state.files.ledger.note(record, { load, number, at });
      const row = encodeRecord(record, { number, load, at });
      bytes += recordBytes(row);
      return rowText(row);
    });
    count += records.length;
    // Somebody waits for all else; a token that is told a moment later is told in time.
    const mayWait = records.length > 0 && records.every(({ kind }) => kind === 'token-emitted');
    const added = { rows, bytes: bytes - this.#taken.bytes, mayWait };
    this.#taken = { records: count, bytes, through };
    return this.#queue.add(added);
  }

  trail(hop: HopTrail): void {
    this.#gatheredHops.add(hop, this.#now());
    if (this.#gatheredHops.count < limits.journalLoneHops || this.#isWritingHops || this.#state.kind !== 'open') return;
    this.#isWritingHops = true; // No commit came by for long: the hops go alone.
    void this.#maintain(async ({ store }) => {
      this.#isWritingHops = false;
      await store.append([], this.#gatheredHops.take(1));
    });
  }

  admission(record: Admission): AdmissionAnswer {
    const state = this.#state;
    assert(state.kind !== 'closed', 'a closed journal admits nothing');
    if (state.kind === 'failed') return { kind: 'refused', error: state.error };
    const { folder, limitBytes } = this.#options;
    const neededBytes = this.#usedBytes() + state.files.ledger.reservedBytes + admissionBytes(record);
    if (neededBytes <= admissionLimitBytes(limitBytes)) return { kind: 'admitted' };
    this.#makeRoom();
    return { kind: 'refused', error: new P4Error('JOURNAL_FULL', { folder, limitBytes, record: record.kind }) };
  }

  replay(): AsyncGenerator<JournalRecord, void, undefined> {
    return this.#reader.replay();
  }

  requestRecords(load: LoadId, request: RequestId): AsyncGenerator<JournalRecord, void, undefined> {
    return this.#reader.requestRecords(load, request);
  }

  highestIds(load: LoadId): HighestIds | null {
    const { ledger } = this.#readableFiles();
    const number = ledger.numberOf(load);
    return number === undefined ? null : (ledger.history(number)?.highest ?? null);
  }

  admittedAt(load: LoadId): number | null {
    if (this.#state.kind !== 'open') return null;
    const { ledger } = this.#state.files;
    const history = ledger.history(ledger.numberOf(load) ?? 0);
    return history === undefined ? null : history.admittedAt * 1000;
  }

  async hops(count: number): Promise<readonly KeptHop[]> {
    const cells = await this.#read(({ store }) => store.newestHops(count));
    return cells.map(keptHop);
  }

  compact(): Promise<void> {
    return this.#compaction.run();
  }

  stats(): JournalStats {
    return {
      state: this.#state.kind,
      records: this.#durable.records,
      recordBytes: this.#durable.bytes,
      lastRecord: this.#durable.through,
      databaseBytes: this.#usedBytes(),
      reservedBytes: this.#state.kind === 'open' ? this.#state.files.ledger.reservedBytes : 0,
      limitBytes: this.#options.limitBytes,
      walBytes: this.#walBytes,
      waitingRecords: this.#queue.waitingRows,
      transactions: this.#transactions,
      checkpoints: this.#checkpoints,
      droppedHops: this.#gatheredHops.dropped,
    };
  }

  report(): JournalReport {
    const { state, records, recordBytes, lastRecord, databaseBytes, reservedBytes, limitBytes } = this.stats();
    const figures = { state, records, recordBytes, lastRecord, databaseBytes, reservedBytes, limitBytes };
    return { ...figures, ...loadsOf(this.#readableFiles().ledger) };
  }

  whenFailed(listener: (error: P4Error) => void): void {
    this.#listener = listener;
  }

  async reopen(): Promise<void> {
    await this.#turns.take(async () => {
      const state = this.#state;
      assert(state.kind === 'failed', 'only a journal that failed is opened again');
      if (state.files !== null) await closeFiles(state.files);
      this.#state = { kind: 'failed', error: state.error, files: null };
      const { folder, limitBytes, failpoint } = this.#options;
      const files = await openFiles({ folder, limitBytes, failpoint, acknowledged: this.#durable.through });
      this.#state = { kind: 'open', files };
      this.#taken = this.#durable = this.#kept = files.kept;
      this.#size = { ...files.size, atRecordBytes: files.kept.bytes };
      this.#walBytes = 0;
    });
  }

  async close(): Promise<void> {
    if (this.#state.kind === 'closed') return;
    clearInterval(this.#compactionTimer);
    await this.#compaction.end();
    await this.#queue.add({ rows: [], bytes: 0, mayWait: false }).catch(() => undefined); // Its failure has gone to those who commit.
    await this.#turns.take(async () => {
      const state = this.#state;
      if (state.kind === 'closed') return;
      this.#state = { kind: 'closed' };
      if (state.files === null) return;
      try {
        this.#options.failpoint('close.before');
        if (state.kind === 'open') await this.#checkpoint(state.files, 'emptied');
      } catch (error) {
        throw writingFailure(this.#options.folder, error);
      } finally {
        await closeFiles(state.files);
      }
    });
  }

  /** One batch, in one transaction. */
  async #transaction({ rows, bytes }: Batch): Promise<void> {
    if (this.#state.kind === 'failed') throw this.#state.error;
    const files = this.#openFiles();
    const startMs = performance.now();
    try {
      if (this.#walBytes >= limits.journalWalBytes) await this.#checkpoint(files, 'reused');
      await files.store.append(rows, this.#gatheredHops.take(limits.journalHopBatch));
    } catch (error) {
      throw this.#fail(writingFailure(this.#options.folder, error));
    }
    if (rows.length === 0) return;
    const { records, bytes: before, through } = this.#durable;
    this.#durable = { records: records + rows.length, bytes: before + bytes, through: through + rows.length };
    this.#transactions += 1;
    this.#walBytes += walBytes(bytes);
    this.#markDurable(files);
    this.#options.watch?.transaction({ records: rows.length, ms: performance.now() - startMs });
    if (this.#walBytes >= limits.journalCheckpointBytes && this.#queue.waitingRows === rows.length)
      void this.#maintain(async (open) => this.#checkpoint(open, 'reused'));
  }

  /** The batch is durable whether the mark can be written or not: only what comes after it fails. */
  #markDurable({ mark }: OpenedJournal): void {
    try {
      mark.write(this.#durable.through);
    } catch (error) {
      this.#fail(writingFailure(this.#options.folder, error));
    }
  }

  /** Work between transactions; its failure is the journal's, and the answer `null` if it is not open. */
  #maintain<Value>(work: (files: OpenedJournal) => Promise<Value>): Promise<Value | null> {
    return this.#turns.take(async () => {
      if (this.#state.kind !== 'open') return null;
      try {
        return await work(this.#state.files);
      } catch (error) {
        this.#fail(writingFailure(this.#options.folder, error));
        return null;
      }
    });
  }

  #compacted(): CompactedJournal {
    return {
      folder: this.#options.folder,
      time: () => ({ now: Math.floor(this.#now() / 1000), lastRecord: this.#durable.through }),
      files: () => (this.#state.kind === 'open' ? this.#state.files : null),
      readers: () => this.#reader.readers,
      between: (work) => this.#maintain(work),
      remove: (store, taken) => this.#remove(store, taken),
      took: (ms) => this.#options.watch?.compaction(ms),
      freePages: () => this.#size.freePages,
      vacuum: async (store, pages) => {
        await store.vacuum(pages);
        await this.#changed(store, pages * pageBytes);
      },
    };
  }

  async #remove(store: Store, { load, numbers, bytes, isWhole }: Taken): Promise<void> {
    const { session, request } = this.#openFiles().ledger.history(load)?.highest ?? { session: 0, request: 0 };
    const without = (kept: Kept): Kept => ({
      records: kept.records - numbers.length,
      bytes: kept.bytes - bytes,
      through: kept.through,
    });
    const kept = without(this.#durable);
    await store.remove({ numbers, kept, expired: { load, session, request, isWhole } });
    this.#options.watch?.removed(numbers.length);
    this.#taken = without(this.#taken);
    this.#durable = this.#kept = kept;
    await this.#changed(store, bytes);
  }

  /** Pages have changed, other than by an append. */
  async #changed(store: Store, bytes: number): Promise<void> {
    await this.#measure(store);
    this.#walBytes += walBytes(bytes);
    if (this.#walBytes >= limits.journalCheckpointBytes) await this.#checkpoint(this.#openFiles(), 'reused');
  }

  async #measure(store: Store): Promise<void> {
    this.#size = { ...(await store.size()), atRecordBytes: this.#durable.bytes };
  }

  /** Nobody could be admitted: what has had its time goes now, so that the next may be. */
  #makeRoom(): void {
    const now = this.#now();
    if (Math.abs(now - this.#madeRoomAt) < limits.journalRoomMs) return;
    this.#madeRoomAt = now;
    void this.compact();
  }

  async #checkpoint({ store }: OpenedJournal, wal: 'reused' | 'emptied'): Promise<void> {
    const startMs = performance.now();
    const durable = this.#durable;
    await store.append([], this.#gatheredHops.take(1));
    if (durable !== this.#kept) await store.keep(durable);
    await store.checkpoint(wal);
    this.#kept = durable;
    await this.#measure(store);
    this.#walBytes = 0;
    this.#checkpoints += 1;
    this.#options.watch?.checkpoint(performance.now() - startMs);
  }

  /** Nothing more is written until `reopen`. A bug is thrown. */
  #fail(error: unknown): P4Error {
    if (!(error instanceof P4Error)) throw error;
    if (this.#state.kind !== 'open') return error;
    this.#state = { kind: 'failed', error, files: this.#state.files };
    // A mark that fails after its batch: that batch's commits are answered first.
    setImmediate(() => {
      this.#listener(error);
    });
    return error;
  }

  /** One read on the connection, between transactions. */
  #read<Value>(work: (files: OpenedJournal) => Promise<Value>): Promise<Value> {
    return this.#turns.take(() => work(this.#readableFiles()));
  }

  #readableFiles(): OpenedJournal {
    if (this.#state.kind === 'failed') throw this.#state.error;
    return this.#openFiles();
  }

  #openFiles(): OpenedJournal {
    const state = this.#state;
    assert(state.kind === 'open', 'the journal is open');
    return state.files;
  }

  /** What the database file has, and what has been added since it was last measured. */
  #usedBytes(): number {
    return this.#size.usedBytes + this.#taken.bytes - this.#size.atRecordBytes;
  }

  #stalled(): P4Error {
    return new P4Error('JOURNAL_WRITE_FAILED', {
      folder: this.#options.folder,
      why: `${this.#queue.waitingRows} records wait for the disk`,
    });
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** Upper bound of what a transaction adds to the WAL: its rows twice, and three pages that hold more than its rows. */
function walBytes(bytes: number): number {
  return bytes * 2 + 3 * 4096;
}

async function closeFiles({ store, mark }: OpenedJournal): Promise<void> {
  try {
    await mark.close();
  } finally {
    await store.close();
  }
}

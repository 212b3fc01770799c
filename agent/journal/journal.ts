/**
 * The agent's journal: what it admitted, durable before anybody is told.
 *
 * - J1: `openJournal` gives a journal that is locked, whole and writable, or says why there is none.
 * - J2, J7, J8: `commit` resolves when its records are durable against power loss; commits gather while one is on its
 *   way, and nothing here blocks the event loop.
 * - J3: no append counts, lists or stats anything; what is known of sizes is kept.
 * - J5, J6: a second holder and a damaged history are refused.
 * - A failed write ends the journal until `reopen`: a sync that failed is never tried again and believed.
 */
import { assert } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { HopTrail, JournalRecord } from '../records.ts';
import { CommitQueue, type Batch } from './commit-queue.ts';
import { writingFailure } from './failure.ts';
import { GatheredHops, keptHop, type KeptHop } from './hop-trail.ts';
import { admissionBytes, knownLoad, recordBytes, type Admission } from './ledger.ts';
import { databaseLimitBytes, openFiles, type OpenedJournal } from './opening.ts';
import { decodeRecord, encodeRecord, rowText } from './record-codec.ts';
import { readRows } from './record-pages.ts';
import type { Kept } from './store.ts';
import { Turns } from './turns.ts';

export interface JournalOptions {
  /** Made with mode 0700 if it is absent. */
  readonly folder: string;
  /** Size in bytes that the journal's files may have together; at least `limits.journalLeastBytes`. */
  readonly limitBytes: number;
  /** Milliseconds since 1970; the system's clock if absent. */
  readonly now?: () => number;
  /** Told of each transaction when it is durable. */
  readonly onTransaction?: (transaction: Transaction) => void;
}

export interface Transaction {
  readonly records: number;
  /** From its start until it was durable, in milliseconds. */
  readonly ms: number;
}

export interface Journal {
  /**
   * Resolves when the records are durable, in the order of the calls. Each load's `load-admitted` comes before all
   * else of that load.
   *
   * Rejects with `JOURNAL_WRITE_FAILED`: these records are not in the journal, nor are any that were committed later;
   * after `reopen` they can be committed again. If the process ends before that, they may be found in it.
   */
  commit(records: readonly JournalRecord[]): Promise<void>;
  /** Keeps a hop for people to look at (E3). It rides along with a later commit and may be lost. */
  trail(hop: HopTrail): void;
  /** Whether the journal can take a record that promises others, and all that it promises (J1, J4). */
  admission(record: Admission): AdmissionAnswer;
  /** The records of the loads that have not ended, in the order of their commits, as far as they are durable now. */
  replay(): AsyncGenerator<JournalRecord, void, undefined>;
  /** The newest hops that were written down, newest first. */
  hops(count: number): Promise<readonly KeptHop[]>;
  stats(): JournalStats;
  /** After a failed write: closes the files, opens and verifies them anew. Rejects as `openJournal` does. */
  reopen(): Promise<void>;
  /** Waits for the commits on their way, writes everything into one file and frees the lock. */
  close(): Promise<void>;
}

/** `refused` with `JOURNAL_FULL`, or with the failure that ended the journal. */
export type AdmissionAnswer = { readonly kind: 'admitted' } | { readonly kind: 'refused'; readonly error: P4Error };

export interface JournalStats {
  readonly state: 'open' | 'failed' | 'closed';
  /** Durable records. */
  readonly records: number;
  /** Sizes of the durable records, as they count against the limit. */
  readonly recordBytes: number;
  /** Number of the last durable record. */
  readonly lastRecord: number;
  /** Estimated size of the database file with all that was committed. */
  readonly databaseBytes: number;
  /** Room kept for what was admitted and has not ended. */
  readonly reservedBytes: number;
  readonly limitBytes: number;
  /** Records that are not durable yet. */
  readonly waitingRecords: number;
  /** Transactions with records since the journal was opened. */
  readonly transactions: number;
  readonly checkpoints: number;
  /** Hops that came faster than they could be written. */
  readonly droppedHops: number;
}

/**
 * Opens the journal of an agent.
 *
 * Rejects with `JOURNAL_UNWRITABLE`, `JOURNAL_LOCKED`, `JOURNAL_CORRUPT`, `JOURNAL_TOO_NEW`, `JOURNAL_SQLITE_TOO_OLD`,
 * and `INVALID_ARGUMENT` for a limit that is too low.
 */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const { folder, limitBytes } = options;
  if (!(limitBytes >= limits.journalLeastBytes))
    throw new P4Error('INVALID_ARGUMENT', {
      what: 'size limit of the journal in bytes',
      found: limitBytes,
      expected: `at least ${limits.journalLeastBytes}`,
    });
  return new SqliteJournal(options, await openFiles({ folder, limitBytes, acknowledged: null }));
}

type State =
  | { readonly kind: 'open'; readonly files: OpenedJournal }
  /** `files` is `null` when reopening failed. */
  | { readonly kind: 'failed'; readonly error: P4Error; readonly files: OpenedJournal | null }
  | { readonly kind: 'closed' };

class SqliteJournal implements Journal {
  readonly #options: JournalOptions;
  readonly #turns = new Turns();
  readonly #queue = new CommitQueue((batch) => this.#turns.take(() => this.#transaction(batch)));
  #state: State;
  #gatheredHops: GatheredHops;
  /** Up to the last record that `commit` was given, up to the last durable one, and as the file has it. */
  #taken: Kept;
  #durable: Kept;
  #kept: Kept;
  #databaseBytes: number;
  #walBytes = 0;
  #transactions = 0;
  #checkpoints = 0;
  #isWritingHops = false;

  constructor(options: JournalOptions, files: OpenedJournal) {
    this.#options = options;
    this.#state = { kind: 'open', files };
    this.#gatheredHops = new GatheredHops(files.lastHop);
    this.#taken = this.#durable = this.#kept = files.kept;
    this.#databaseBytes = files.databaseBytes;
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
      state.files.ledger.note(record, load);
      const row = encodeRecord(record, { number, load, at });
      bytes += recordBytes(row);
      return rowText(row);
    });
    count += records.length;
    const added = { rows, bytes: bytes - this.#taken.bytes };
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
    if (neededBytes + limits.journalSpareBytes <= databaseLimitBytes(limitBytes)) return { kind: 'admitted' };
    return { kind: 'refused', error: new P4Error('JOURNAL_FULL', { folder, limitBytes, record: record.kind }) };
  }

  async *replay(): AsyncGenerator<JournalRecord, void, undefined> {
    const { ledger } = this.#openFiles();
    const { folder } = this.#options;
    const { through } = this.#durable;
    const live = ledger.liveLoads();
    const lives = new Set(live);
    const source = {
      folder,
      page: (after: number) => this.#turns.take(() => this.#openFiles().store.page(after, through)),
      body: (number: number) => this.#turns.take(() => this.#openFiles().store.body(number)),
    };
    for await (const row of readRows(source, (live[0] ?? through + 1) - 1)) {
      if (!lives.has(row.load)) continue;
      const record = decodeRecord(row, knownLoad(ledger, row.load));
      assert(record !== null, 'every kind was known when the journal was opened');
      yield record;
    }
  }

  async hops(count: number): Promise<readonly KeptHop[]> {
    const cells = await this.#turns.take(() => this.#openFiles().store.newestHops(count));
    return cells.map(keptHop);
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
      waitingRecords: this.#queue.waitingRows,
      transactions: this.#transactions,
      checkpoints: this.#checkpoints,
      droppedHops: this.#gatheredHops.dropped,
    };
  }

  async reopen(): Promise<void> {
    await this.#turns.take(async () => {
      const state = this.#state;
      assert(state.kind === 'failed', 'only a journal that failed is opened again');
      if (state.files !== null) await closeFiles(state.files);
      this.#state = { kind: 'failed', error: state.error, files: null };
      const { folder, limitBytes } = this.#options;
      const files = await openFiles({ folder, limitBytes, acknowledged: this.#durable.through });
      this.#state = { kind: 'open', files };
      this.#taken = this.#durable = this.#kept = files.kept;
      this.#databaseBytes = files.databaseBytes;
      this.#walBytes = 0;
    });
  }

  async close(): Promise<void> {
    if (this.#state.kind === 'closed') return;
    await this.#queue.add({ rows: [], bytes: 0 }).catch(() => undefined); // Its failure has gone to those who commit.
    await this.#turns.take(async () => {
      const state = this.#state;
      if (state.kind === 'closed') return;
      this.#state = { kind: 'closed' };
      if (state.files === null) return;
      try {
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
    this.#options.onTransaction?.({ records: rows.length, ms: performance.now() - startMs });
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

  /** Work between transactions that nobody waits for; its failure is the journal's. */
  async #maintain(work: (files: OpenedJournal) => Promise<void>): Promise<void> {
    await this.#turns.take(async () => {
      if (this.#state.kind !== 'open') return;
      try {
        await work(this.#state.files);
      } catch (error) {
        this.#fail(writingFailure(this.#options.folder, error));
      }
    });
  }

  async #checkpoint({ store }: OpenedJournal, wal: 'reused' | 'emptied'): Promise<void> {
    const durable = this.#durable;
    await store.append([], this.#gatheredHops.take(1));
    if (durable !== this.#kept) await store.keep(durable);
    await store.checkpoint(wal);
    this.#kept = durable;
    this.#databaseBytes = await store.databaseBytes();
    this.#walBytes = 0;
    this.#checkpoints += 1;
  }

  /** Nothing more is written until `reopen`. A bug is thrown. */
  #fail(error: unknown): P4Error {
    if (!(error instanceof P4Error)) throw error;
    if (this.#state.kind === 'open') this.#state = { kind: 'failed', error, files: this.#state.files };
    return error;
  }

  #openFiles(): OpenedJournal {
    const state = this.#state;
    assert(state.kind === 'open', 'the journal is open');
    return state.files;
  }

  /** What the database file has, and what has been added since it was last measured. */
  #usedBytes(): number {
    return this.#databaseBytes + this.#taken.bytes - this.#kept.bytes;
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

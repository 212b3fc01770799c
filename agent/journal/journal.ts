/**
 * The agent's journal: what it admitted, durable before anybody is told. This is its contract.
 *
 * - J1: `openJournal` gives a journal that is locked, whole and writable, or says why there is none.
 * - J2, J7, J8: `commit` resolves when its records are durable against power loss; commits gather while one is on its
 *   way, tokens also until `limits.journalGatherMs` after the last began, and nothing here blocks the event loop.
 * - J3: no append counts, lists or stats anything; what is known of sizes is kept.
 * - J5, J6: a second holder and a damaged history are refused.
 * - A failed write ends the journal until `reopen`: a sync that failed is never tried again and believed.
 */
import process from 'node:process';

import { P4Error } from '../../protocol/errors.ts';
import type { JournalReport } from '../../protocol/host-order.ts';
import type { LoadId, RequestId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { HopTrail, JournalRecord } from '../records.ts';
import { failpointOf, type Failpoint } from './failpoint.ts';
import type { KeptHop } from './hop-trail.ts';
import type { Admission } from './ledger.ts';
import type { HighestIds } from './load-history.ts';
import { openFiles } from './opening.ts';
import { SqliteJournal } from './sqlite-journal.ts';

export interface JournalOptions {
  /** Made with mode 0700 if it is absent. */
  readonly folder: string;
  /** Size in bytes that the journal's files may have together; at least `limits.journalLeastBytes`. */
  readonly limitBytes: number;
  /** How long tokens gather for one transaction, in milliseconds; `limits.journalGatherMs` if absent. */
  readonly gatherMs?: number;
  /** Milliseconds since 1970; the system's clock if absent. */
  readonly now?: () => number;
  /** Told what the journal does. */
  readonly watch?: JournalWatch;
  /** For tests: where the disk fails; what `failpointOf` makes of the environment if absent. */
  readonly failpoint?: Failpoint;
}

export interface JournalWatch {
  /** Each transaction when it is durable; `ms` from its start. */
  transaction(done: { readonly records: number; readonly ms: number }): void;
  checkpoint(ms: number): void;
  /** A look at what has had its time, with its pauses. */
  compaction(ms: number): void;
  /** Records that have had their time are out. */
  removed(records: number): void;
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
  /**
   * The records of the loads that have not ended, in the order of their commits, as far as they are durable now. Those
   * of sessions and requests whose token ids have had their time (J4) are left out; what ids they bore, `highestIds`
   * knows.
   */
  replay(): AsyncGenerator<JournalRecord, void, undefined>;
  /**
   * The records of one request, of a load that lives or has ended, in the order of their commits, as far as they are
   * durable now; none for a request or a load that the journal never heard of. Reads in pages between which commits go
   * on, from the request's admission on.
   *
   * Once its token ids have had their time (J4), only `request-ended` and `request-settled` come; when those have had
   * theirs, the first `next` throws `REQUEST_EXPIRED`. Throws the failure of a journal that failed.
   */
  requestRecords(load: LoadId, request: RequestId): AsyncGenerator<JournalRecord, void, undefined>;
  /**
   * The highest ids that records of the load have borne, expired ones included, 0 where there was none: the next are
   * above them (E1). `null` for a load of which there are no records.
   */
  highestIds(load: LoadId): HighestIds | null;
  /** When the load was admitted, in milliseconds since 1970; `null` for a load of which there are no records. */
  admittedAt(load: LoadId): number | null;
  /** The newest hops that were written down, newest first. */
  hops(count: number): Promise<readonly KeptHop[]>;
  /**
   * Takes out what has had its time (J4); the journal does so by itself every `limits.journalCompactionMs`, and when it
   * finds no room for an admission. Resolves when it has gone, or the journal is not open any more.
   */
  compact(): Promise<void>;
  stats(): JournalStats;
  /** The same and its loads, for people. Throws the failure of a journal that failed. */
  report(): JournalReport;
  /**
   * Has the listener told of every failure, once, after the commits that fail with it; also of one in the journal's own
   * work, which no commit waits for: compaction, checkpoints, the trail of hops.
   */
  whenFailed(listener: (error: P4Error) => void): void;
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
  /** Bytes of the database that are in use, estimated, with all that was committed; what compaction freed is not. */
  readonly databaseBytes: number;
  /** Room kept for what was admitted and has not ended. */
  readonly reservedBytes: number;
  readonly limitBytes: number;
  /** What was written into the WAL since the latest checkpoint, at most. */
  readonly walBytes: number;
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
  const { failpoint = failpointOf(process.env) } = options;
  const files = await openFiles({ folder, limitBytes, acknowledged: null, failpoint });
  return new SqliteJournal({ ...options, failpoint }, files);
}

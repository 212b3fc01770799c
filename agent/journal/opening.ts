/**
 * Opening a journal: lock it, check it, read it through, prove that it can be written (J1, J5, J6).
 *
 * Every record is read and its checksum compared, so what is opened is whole: a record that is damaged, missing or cut
 * off is refused with its number, never passed over.
 */
import { stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

import { syncFolder } from '../../model/folder-sync.ts';
import { makeFolder } from '../../model/made-folder.ts';
import { P4Error } from '../../protocol/errors.ts';
import { SqliteFailure, sqliteVersionNumber, type Connection } from './connection.ts';
import { databaseLimitBytes } from './database-limit.ts';
import type { Failpoint } from './failpoint.ts';
import { corrupt, isSystemError, openingFailure } from './failure.ts';
import { Ledger, recordBytes } from './ledger.ts';
import { Mark, readMark, type MarkReading } from './mark.ts';
import { admittedLoad, decodeRecord, type Row } from './record-codec.ts';
import { readRows } from './record-pages.ts';
import { isRepairUnfinished } from './repair-swap.ts';
import { isEmptyDatabase, migrate } from './schema.ts';
import { Store, databaseFileName, lockedConnection, type DatabaseSize, type Kept } from './store.ts';

export interface Opening {
  readonly folder: string;
  /** Size in bytes the journal's files may have together. */
  readonly limitBytes: number;
  /** After a failed write: number of the last record that was acknowledged. What lies behind it is dropped. */
  readonly acknowledged: number | null;
  readonly failpoint: Failpoint;
}

/** A journal that is locked, whole and writable. */
export interface OpenedJournal {
  readonly store: Store;
  readonly mark: Mark;
  readonly ledger: Ledger;
  readonly kept: Kept;
  readonly size: DatabaseSize;
  /** Number of the newest hop of the trail. */
  readonly lastHop: number;
}

/** SQLite before 3.51.3 can corrupt a WAL when it is reset while another connection reads. */
const oldestSqlite = 3_051_003;

export function requireSqlite(version: number): void {
  if (version < oldestSqlite)
    throw new P4Error('JOURNAL_SQLITE_TOO_OLD', { found: dotted(version), needed: dotted(oldestSqlite) });
}

export async function openFiles(opening: Opening): Promise<OpenedJournal> {
  requireSqlite(sqliteVersionNumber);
  const { folder } = opening;
  try {
    opening.failpoint('open.before');
    await makeJournalFolder(folder);
    await refuseVanishedDatabase(folder);
    if (await isRepairUnfinished(folder)) throw corrupt(folder, 'a repair was cut off: it has to be run again');
    const connection = await lockedConnection(folder, databaseLimitBytes(opening.limitBytes));
    try {
      return await openLocked(connection, opening);
    } catch (error) {
      await connection.close().catch(() => undefined); // What failed first is what has to be told.
      throw error;
    }
  } catch (error) {
    if (error instanceof SqliteFailure && error.code === 'SQLITE_BUSY') throw await lockedFailure(folder, error);
    throw openingFailure(folder, error);
  }
}

async function openLocked(
  connection: Connection,
  { folder, acknowledged, failpoint }: Opening,
): Promise<OpenedJournal> {
  const mark = await readMark(folder);
  if (mark.kind !== 'absent' && (await isEmptyDatabase(connection)))
    throw corrupt(folder, `${databaseFileName} is empty, although records were written to it`);
  failpoint('open.after');
  failpoint('migrate.before');
  await migrate(connection, folder);
  failpoint('migrate.after');
  const store = await Store.over(connection, failpoint);
  const fault = await store.fault();
  if (fault !== null) throw corrupt(folder, fault);
  if (acknowledged !== null) await store.discardAfter(acknowledged);
  await store.proveWritable();
  // After a failed sync the WAL may lie in memory only: what it holds is written anew before anything rests on it.
  await store.checkpoint(acknowledged === null ? 'reused' : 'emptied');
  const counters = await store.kept();
  if (counters === null) throw corrupt(folder, 'the kept counters are missing');
  const { journal, ...expected } = counters;
  const { ledger, kept } = await verify(store, { folder, expected });
  for (const expired of await store.expired()) {
    if (expired === null) throw corrupt(folder, 'what is known of expired requests is damaged');
    ledger.history(expired.load)?.raise(expired);
  }
  checkMark(folder, mark, { journal, number: kept.through });
  return {
    store,
    ledger,
    kept,
    size: await store.size(),
    lastHop: await store.lastHop(),
    mark: await Mark.open(folder, { journal, number: kept.through }, failpoint),
  };
}

/** Reads every record and compares it with its checksum, and all together with the kept counters. */
async function verify(
  store: Store,
  { folder, expected }: { readonly folder: string; readonly expected: Kept },
): Promise<{ readonly ledger: Ledger; readonly kept: Kept }> {
  const source = {
    folder,
    page: (after: number) => store.page(after, Number.MAX_SAFE_INTEGER),
    body: (number: number) => store.body(number),
  };
  const ledger = new Ledger();
  const counted = { records: 0, bytes: 0, through: 0 };
  const compare = () => {
    if (counted.records !== expected.records || counted.bytes !== expected.bytes)
      throw corrupt(
        folder,
        `${counted.records} records up to number ${expected.through} instead of ${expected.records}`,
      );
    counted.through = expected.through;
  };
  for await (const row of readRows(source, 0)) {
    if (counted.through < expected.through && row.number > expected.through) compare();
    if (row.number > expected.through && row.number !== counted.through + 1)
      throw corrupt(folder, `record ${counted.through + 1} is missing`);
    noteRow(ledger, folder, row);
    counted.records += 1;
    counted.bytes += recordBytes(row);
    counted.through = row.number;
  }
  if (counted.through <= expected.through) compare();
  return { ledger, kept: counted };
}

/** Takes note of a row whose checksum was right. Throws `JOURNAL_CORRUPT`, `JOURNAL_TOO_NEW`. */
export function noteRow(ledger: Ledger, folder: string, row: Row): void {
  const load = admittedLoad(row) ?? ledger.loadOf(row.load);
  if (load === undefined) throw corrupt(folder, `record ${row.number} belongs to a load that is not there`);
  const record = decodeRecord(row, load);
  if (record === null)
    throw new P4Error('JOURNAL_TOO_NEW', { folder, found: `record ${row.number} of kind ${row.kind}` });
  ledger.note(record, { load: row.load, number: row.number, at: row.at ?? 0 });
}

function checkMark(
  folder: string,
  mark: MarkReading,
  last: { readonly journal: string; readonly number: number },
): void {
  switch (mark.kind) {
    case 'absent':
      if (last.number > 0) throw corrupt(folder, 'journal.mark is missing: the last records may be, too');
      return;
    case 'damaged':
      throw corrupt(folder, 'journal.mark is damaged');
    case 'found':
      if (mark.journal !== last.journal) throw corrupt(folder, 'journal.mark belongs to another journal');
      if (mark.number > last.number)
        throw corrupt(folder, `record ${last.number + 1} and what follows it is missing, up to number ${mark.number}`);
      return;
  }
}

/** SQLite would begin a new history in the place of a database that was removed or emptied. */
async function refuseVanishedDatabase(folder: string): Promise<void> {
  if ((await readMark(folder)).kind === 'absent') return;
  // Only `stat`: opening and closing the file here would drop the locks this process may hold on it.
  const size = await stat(join(folder, databaseFileName)).then(
    (found) => found.size,
    () => 0,
  );
  if (size === 0) throw corrupt(folder, `${databaseFileName} is missing or empty, although records were written to it`);
}

async function makeJournalFolder(folder: string): Promise<void> {
  const made = await makeFolder(folder, 0o700);
  const found = await stat(folder);
  if (!found.isDirectory()) throw new P4Error('JOURNAL_UNWRITABLE', { folder, why: 'it is not a folder' });
  if (made !== undefined) await syncFolder(dirname(resolve(folder)));
}

export async function lockedFailure(folder: string, cause: SqliteFailure): Promise<P4Error> {
  const mark = await readMark(folder).catch(() => null);
  const holder = mark?.kind === 'found' && isRunning(mark.pid) ? { pid: mark.pid } : {};
  return new P4Error('JOURNAL_LOCKED', { folder, ...holder }, cause);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isSystemError(error) && error.code === 'EPERM';
  }
}

/** 3051003 as `3.51.3`. */
function dotted(version: number): string {
  return [Math.floor(version / 1_000_000), Math.floor(version / 1000) % 1000, version % 1000].join('.');
}

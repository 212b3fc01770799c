/**
 * Everything a journal can be asked, of files that are not changed, with every fault and its place (J6): what
 * `p4 journal check` says, and what `p4 journal repair` saves.
 */
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import { Connection, SqliteFailure, sqliteVersionNumber } from './connection.ts';
import { openingFailure } from './failure.ts';
import { recordBytes } from './ledger.ts';
import { readMark, type MarkReading } from './mark.ts';
import { lockedFailure, requireSqlite } from './opening.ts';
import { admittedLoad, kindOf, type Row } from './record-codec.ts';
import { isDamage, scanRecords, type LostRecords } from './scan.ts';
import { knownSchemaSteps } from './schema.ts';
import { databaseFileName, databaseSize, recordReader, tableRows, type ExpiredIds, type Kept } from './store.ts';

/** Gets every whole record, in order. */
export type VisitRow = (row: Row) => Promise<void> | void;

export interface Inspection {
  readonly folder: string;
  /** Records that are what their checksums say. */
  readonly records: number;
  /** Their bytes as they count against the limit. */
  readonly recordBytes: number;
  /** Number of the last record that was found, or is known to have been. */
  readonly lastRecord: number;
  readonly lost: readonly LostRecords[];
  /** What else is wrong, a sentence each. */
  readonly faults: readonly string[];
  /** Highest ids among records that had their time, as far as they are whole. */
  readonly expired: readonly ExpiredIds[];
  /** Bytes of the database's pages that are in use, 0 when they cannot be told. */
  readonly databaseBytes: number;
  /** Repairs that this journal has been through, as they were told. */
  readonly repairs: readonly string[];
}

/**
 * Reads a journal through without changing it.
 *
 * Rejects with `JOURNAL_MISSING`, `JOURNAL_LOCKED` while an agent runs, `JOURNAL_TOO_NEW`, and `JOURNAL_UNWRITABLE` where
 * the files may not be read.
 */
export async function inspectJournal(folder: string, visit: VisitRow = () => undefined): Promise<Inspection> {
  requireSqlite(sqliteVersionNumber);
  const mark = await readMark(folder);
  const path = join(folder, databaseFileName);
  if (!(await isThere(path))) {
    if (mark.kind === 'absent') throw new P4Error('JOURNAL_MISSING', { folder });
    return nothingReadable(folder, mark, `${databaseFileName} is missing, although records were written to it`);
  }
  const index = `${path}-shm`;
  const hadIndex = await isThere(index);
  let connection: Connection | null = null;
  try {
    connection = await Connection.openToRead(path);
    await connection.value('SELECT count(*) FROM sqlite_schema');
    return await inspect(connection, { folder, mark, visit });
  } catch (error) {
    if (error instanceof SqliteFailure && error.code === 'SQLITE_BUSY') throw await lockedFailure(folder, error);
    if (isDamage(error) && !(error instanceof SqliteFailure && error.code === 'SQLITE_CANTOPEN'))
      return nothingReadable(folder, mark, `${databaseFileName} cannot be read at all: ${error.message}`);
    throw openingFailure(folder, error);
  } finally {
    await connection?.close();
    if (!hadIndex) await rm(index, { force: true }); // Reading made it; an agent works without.
  }
}

interface Reading {
  readonly folder: string;
  readonly mark: MarkReading;
  readonly visit: VisitRow;
}

async function inspect(connection: Connection, { folder, mark, visit }: Reading): Promise<Inspection> {
  const steps = Number(await readable(connection.value('SELECT ifnull(max(step), 0) FROM schema'), 0));
  if (steps > knownSchemaSteps)
    throw new P4Error('JOURNAL_TOO_NEW', { folder, found: `schema ${steps}`, known: `schema ${knownSchemaSteps}` });
  const faults = await databaseFaults(connection);
  const kept = await readable(tableRows.kept(connection), null);
  if (kept === null) faults.push('the kept counters cannot be read');
  const greatest = Number(await readable(connection.value('SELECT ifnull(max(number), 0) FROM records'), 0));
  const lastRecord = Math.max(greatest, kept?.through ?? 0, mark.kind === 'found' ? mark.number : 0);
  const tally = new Tally(kept, lastRecord);
  const source = await readable(recordReader(connection), null);
  if (source === null) tally.lose({ from: 1, to: lastRecord, why: 'the table of records cannot be read' });
  else
    for await (const scanned of scanRecords(source, lastRecord)) {
      if (scanned.kind === 'lost') tally.lose(scanned.lost);
      else {
        tally.count(scanned.row, folder);
        await visit(scanned.row);
      }
    }
  if (mark.kind !== 'found' && lastRecord > 0)
    tally.lose({
      from: lastRecord + 1,
      to: lastRecord + 1,
      why: 'perhaps, and what followed: journal.mark would tell',
    });
  const expired: readonly (ExpiredIds | null)[] =
    steps < 2 ? [] : await readable(tableRows.expired(connection), [null]);
  if (expired.includes(null)) faults.push('what is known of expired requests is damaged in part');
  const repairs = await readable(tableRows.repairs(connection), []);
  const { lost, ...counted } = tally.end();
  const size = await readable(databaseSize(connection), null);
  return {
    folder,
    ...counted,
    lost,
    faults: [...faults, ...tally.faults(), ...markFaults(mark, { kept, lastRecord })],
    expired: expired.filter((ids) => ids !== null),
    databaseBytes: size?.usedBytes ?? 0,
    repairs,
  };
}

/** Counts what is found, and sees what is not there although it should be. */
class Tally {
  readonly #kept: Kept | null;
  readonly #lastRecord: number;
  readonly #lost: LostRecords[] = [];
  readonly #loads = new Set<number>();
  #strays = 0;
  #records = 0;
  #bytes = 0;
  /** Of those up to the number that the kept counters speak of. */
  #keptRecords = 0;
  #last: number;

  constructor(kept: Kept | null, lastRecord: number) {
    this.#kept = kept;
    this.#lastRecord = lastRecord;
    this.#last = kept?.through ?? 0;
  }

  lose(lost: LostRecords): void {
    if (lost.to >= lost.from) this.#lost.push(lost);
    this.#passTo(lost.to, lost.from);
  }

  /** @throws JOURNAL_TOO_NEW for a kind of a newer p4 */
  count(row: Row, folder: string): void {
    if (kindOf(row) === null)
      throw new P4Error('JOURNAL_TOO_NEW', { folder, found: `record ${row.number} of kind ${row.kind}` });
    this.#passTo(row.number, row.number);
    if (admittedLoad(row) !== null) this.#loads.add(row.load);
    if (!this.#loads.has(row.load)) this.#strays += 1;
    this.#records += 1;
    this.#bytes += recordBytes(row);
    if (row.number <= (this.#kept?.through ?? 0)) this.#keptRecords += 1;
  }

  end(): Pick<Inspection, 'records' | 'recordBytes' | 'lastRecord' | 'lost'> {
    this.#passTo(this.#lastRecord + 1, this.#lastRecord + 1);
    this.#lost.push(...this.#lostSomewhere());
    const [records, recordBytes, lastRecord] = [this.#records, this.#bytes, this.#lastRecord];
    return { records, recordBytes, lastRecord, lost: this.#lost };
  }

  faults(): readonly string[] {
    return this.#strays > 0 ? [`${this.#strays} records belong to loads whose admission is not there`] : [];
  }

  /** Compaction leaves gaps: only the count tells that records are missing among them. */
  #lostSomewhere(): readonly LostRecords[] {
    if (this.#kept === null) {
      const why = 'perhaps: without the kept counters nobody knows what is missing';
      return this.#lastRecord === 0 ? [] : [{ from: 1, to: this.#lastRecord, why }];
    }
    const { records, through } = this.#kept;
    const named = this.#lost.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(to, through) - from + 1), 0);
    const missing = records - this.#keptRecords - named;
    if (missing > 0) return [{ from: 1, to: through, why: `${missing} records, nobody knows which` }];
    if (this.#keptRecords <= records) return [];
    return [{ from: 1, to: through, why: `perhaps: ${this.#keptRecords} records where ${records} were counted` }];
  }

  /** Behind the kept counters' number there is no gap in a whole journal. */
  #passTo(number: number, from: number): void {
    if (from > this.#last + 1 && number > (this.#kept?.through ?? 0) && this.#kept !== null)
      this.#lost.push({ from: this.#last + 1, to: from - 1, why: 'missing' });
    this.#last = Math.max(this.#last, number);
  }
}

async function databaseFaults(connection: Connection): Promise<string[]> {
  try {
    const answer = await connection.value('PRAGMA integrity_check(1)');
    return answer === 'ok' ? [] : [`SQLite finds: ${String(answer).replaceAll('\n', ' ')}`];
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [`SQLite cannot check the database: ${error.message}`];
  }
}

function markFaults(
  mark: MarkReading,
  { kept, lastRecord }: { readonly kept: { readonly journal: string } | null; readonly lastRecord: number },
): readonly string[] {
  switch (mark.kind) {
    case 'absent':
      return lastRecord > 0 ? ['journal.mark is missing: the last records may be, too'] : [];
    case 'damaged':
      return ['journal.mark is damaged'];
    case 'found':
      return kept !== null && mark.journal !== kept.journal ? ['journal.mark belongs to another journal'] : [];
  }
}

function nothingReadable(folder: string, mark: MarkReading, fault: string): Inspection {
  const lastRecord = mark.kind === 'found' ? mark.number : 0;
  const lost = lastRecord === 0 ? [] : [{ from: 1, to: lastRecord, why: 'the database cannot be read' }];
  const nothing = { records: 0, recordBytes: 0, databaseBytes: 0, expired: [], repairs: [] };
  return { folder, ...nothing, lastRecord, lost, faults: [fault] };
}

/** What damage leaves of an answer. */
async function readable<Value, Otherwise>(answer: Promise<Value>, otherwise: Otherwise): Promise<Value | Otherwise> {
  try {
    return await answer;
  } catch (error) {
    if (!isDamage(error)) throw error;
    return otherwise;
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

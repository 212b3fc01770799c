/**
 * The journal's database file: every SQL statement the journal runs, and the settings that make it durable.
 *
 * - `locking_mode=EXCLUSIVE`: the lock is the operating system's and lasts as long as the connection or the process,
 *   so a second agent is refused and `kill -9` leaves nothing behind (J5). There is one connection, which writes.
 * - `journal_mode=WAL`, `synchronous=FULL`: a statement that returned is durable against power loss (J7).
 * - `wal_autocheckpoint=0`: checkpoints are taken between transactions, not inside one. The WAL is then written again
 *   from its start; overwriting costs half of what growing the file does.
 *
 * Nothing here orders calls: the journal lets one run at a time.
 */
import { join } from 'node:path';

import { crc32c } from '@node-rs/crc32';

import { assert } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { Connection, type PreparedStatement, type SqliteValue } from './connection.ts';
import type { Failpoint } from './failpoint.ts';

/** Counters as they stood when record `through` was the last. */
export interface Kept {
  readonly records: number;
  /** Sizes of the records as `recordBytes` gives them. */
  readonly bytes: number;
  readonly through: number;
}

export interface ExpiredIds {
  readonly load: number;
  readonly session: number;
  readonly request: number;
}

export interface Removal {
  readonly numbers: readonly number[];
  /** As they stand afterwards. */
  readonly kept: Kept;
  /** `isWhole`: nothing is left of the load, so nobody asks. */
  readonly expired: ExpiredIds & { readonly isWhole: boolean };
}

export interface DatabaseSize {
  /** Of the pages in use, without the WAL. */
  readonly usedBytes: number;
  readonly freePages: number;
}

/** A request in the columns of its rows: by the number of its load. */
export interface RequestKey {
  readonly load: number;
  readonly request: number;
}

export interface KeptCounters extends Kept {
  /** Random name of the journal. */
  readonly journal: string;
}

export const databaseFileName = 'journal.sqlite';

export const pageBytes = 4096;
const columns = 'number, kind, load, session, request, step, token, at, body, crc32c';

const insertRecords = `INSERT INTO records (${columns})
  SELECT ${elements(10)} FROM json_each(?1)`;
const insertHops = `INSERT OR REPLACE INTO hops (slot, number, at, load, source, target, frame, rows, bytes, crc32c)
  SELECT (value ->> 0) % ${limits.journalHops}, ${elements(9)} FROM json_each(?1)`;
const updateKept = 'UPDATE kept SET records = ?1, bytes = ?2, through = ?3';
/** Long bodies stand apart, so that a page of them stays small: `null`, then how many bytes they have. */
const selectPageWhere = (condition: string): string =>
  `SELECT json_group_array(json_array(number, kind, load, session, request, step, token, at,
  CASE WHEN octet_length(body) <= ${limits.journalPageBodyBytes} THEN body END, crc32c, octet_length(body)))
  FROM (SELECT * FROM records WHERE ${condition} ORDER BY number LIMIT ?3)`;
const selectPage = selectPageWhere('number > ?1 AND number <= ?2');
const selectRequestPage = selectPageWhere('number > ?1 AND number <= ?2 AND load = ?4 AND request = ?5');
const selectBody = 'SELECT body FROM records WHERE number = ?1';
const selectHops = `SELECT json_group_array(json_array(number, at, load, source, target, CAST(frame AS TEXT), rows, bytes,
  crc32c)) FROM (SELECT * FROM hops ORDER BY number DESC LIMIT ?1)`;

export class Store {
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #at: Failpoint;

  private constructor(connection: Connection, statements: Statements, failpoint: Failpoint) {
    this.#connection = connection;
    this.#statements = statements;
    this.#at = failpoint;
  }

  /** Takes over a connection whose tables are there. */
  static async over(connection: Connection, failpoint: Failpoint): Promise<Store> {
    const statements = {
      begin: await connection.prepare('BEGIN IMMEDIATE'),
      commit: await connection.prepare('COMMIT'),
      records: await connection.prepare(insertRecords),
      hops: await connection.prepare(insertHops),
      kept: await connection.prepare(updateKept),
      page: await connection.prepare(selectPage),
      requestPage: await connection.prepare(selectRequestPage),
      body: await connection.prepare(selectBody),
      newestHops: await connection.prepare(selectHops),
    };
    return new Store(connection, statements, failpoint);
  }

  /** Writes rows, each as `rowText` gives it, and hops in one transaction. Returned means durable. */
  async append(rows: readonly string[], hops: string | null): Promise<void> {
    if (rows.length === 0 && hops === null) return;
    const { begin, records, hops: intoHops, commit } = this.#statements;
    this.#at('append.before');
    // One statement is a transaction of its own: one turn on the thread pool.
    if (hops === null) await records.run(`[${rows.join()}]`);
    else {
      await begin.run();
      if (rows.length > 0) await records.run(`[${rows.join()}]`);
      await intoHops.run(hops);
      this.#at('append.commit');
      await commit.run();
    }
    this.#at('append.after');
  }

  /** Writes the counters down. */
  async keep({ records, bytes, through }: Kept): Promise<void> {
    this.#at('keep.before');
    await this.#statements.kept.run(records, bytes, through);
    this.#at('keep.after');
  }

  kept(): Promise<KeptCounters | null> {
    return tableRows.kept(this.#connection);
  }

  /**
   * The rows after one number up to another, in order; empty at the end. Each is an array of the columns and the length
   * of the body in bytes; a body longer than `limits.journalPageBodyBytes` is `null` and has to be asked for.
   */
  async page(after: number, through: number, most = limits.journalPageRecords): Promise<readonly unknown[]> {
    return parsedArray(await this.#statements.page.value(after, through, most));
  }

  /** As `page`, only the rows of one request. Every row between the numbers is looked at. */
  async requestPage(after: number, through: number, of: RequestKey): Promise<readonly unknown[]> {
    const { requestPage } = this.#statements;
    return parsedArray(await requestPage.value(after, through, limits.journalPageRecords, of.load, of.request));
  }

  /** The body of one record. */
  body(number: number): Promise<SqliteValue> {
    return this.#statements.body.value(number);
  }

  /** The newest hops, newest first, as column arrays. */
  async newestHops(count: number): Promise<readonly unknown[]> {
    return parsedArray(await this.#statements.newestHops.value(count));
  }

  async lastHop(): Promise<number> {
    return Number(await this.#connection.value('SELECT ifnull(max(number), 0) FROM hops'));
  }

  /** Drops records whose commit was never acknowledged. */
  async discardAfter(number: number): Promise<void> {
    this.#at('discard.before');
    await this.#connection.exec(`DELETE FROM records WHERE number > ${number}`);
    this.#at('discard.after');
  }

  /** The first fault SQLite's own check of pages, columns and index finds, or `null`. */
  async fault(): Promise<string | null> {
    const answer = await this.#connection.value('PRAGMA integrity_check(1)');
    return answer === 'ok' ? null : String(answer);
  }

  /** For a journal that is made of another one's records: what expired there, and what became of it. */
  async inherit(
    expired: readonly ExpiredIds[],
    { at, said }: { readonly at: number; readonly said: string },
  ): Promise<void> {
    for (const ids of expired) {
      const { load, session, request } = ids;
      await this.#connection.exec(
        `INSERT INTO expired VALUES (${load}, ${session}, ${request}, ${expiredChecksum(ids)})`,
      );
    }
    const insert = await this.#connection.prepare('INSERT INTO repairs (at, said) VALUES (?1, ?2)');
    await insert.run(at, said);
  }

  /** A commit of its own: proves that the file can be written. */
  async proveWritable(): Promise<void> {
    this.#at('prove.before');
    await this.#connection.exec('UPDATE kept SET opened = opened + 1');
    this.#at('prove.after');
  }

  /** Moves the whole WAL into the database file; `emptied` also leaves a WAL of length zero. */
  async checkpoint(wal: 'reused' | 'emptied'): Promise<void> {
    const mode = wal === 'reused' ? 'PASSIVE' : 'TRUNCATE';
    this.#at('checkpoint.before');
    const answer = await this.#connection.row(`PRAGMA wal_checkpoint(${mode})`);
    this.#at('checkpoint.after');
    assert(answer?.busy === 0, 'the only connection is never in its own way');
  }

  /**
   * Deletes records, with the counters as they stand without them and what the load's deleted records have borne, in one
   * transaction. Returned means durable.
   */
  async remove({ numbers, kept, expired }: Removal): Promise<void> {
    const { load, session, request } = expired;
    const expiry = expired.isWhole
      ? `DELETE FROM expired WHERE load = ${load}`
      : `INSERT OR REPLACE INTO expired VALUES (${load}, ${session}, ${request}, ${expiredChecksum(expired)})`;
    this.#at('remove.before');
    await this.#connection.exec(`
      BEGIN IMMEDIATE;
      DELETE FROM records WHERE number IN (${numbers.join()});
      UPDATE kept SET records = ${kept.records}, bytes = ${kept.bytes}, through = ${kept.through};
      ${expiry};
      COMMIT;`);
    this.#at('remove.after');
  }

  /** The highest ids among deleted records, by load; `null` for a row that is not what its checksum says. */
  expired(): Promise<readonly (ExpiredIds | null)[]> {
    return tableRows.expired(this.#connection);
  }

  size(): Promise<DatabaseSize> {
    return databaseSize(this.#connection);
  }

  /** Moves pages from the end of the file to free ones; the next checkpoint gives their room back to the disk. */
  async vacuum(pages: number): Promise<void> {
    this.#at('vacuum.before');
    await this.#connection.exec(`PRAGMA incremental_vacuum(${pages})`);
    this.#at('vacuum.after');
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

/** What stands beside the records. Rejects with what SQLite says of tables that are damaged or missing. */
export const tableRows = {
  async kept(connection: Connection): Promise<KeptCounters | null> {
    const row = await connection.row('SELECT journal, records, bytes, through FROM kept');
    const { journal, records, bytes, through } = row ?? {};
    const isWhole = typeof journal === 'string' && typeof records === 'number';
    if (!isWhole || typeof bytes !== 'number' || typeof through !== 'number') return null;
    return { journal, records, bytes, through };
  },

  async expired(connection: Connection): Promise<readonly (ExpiredIds | null)[]> {
    const select = 'SELECT json_group_array(json_array(load, session, request, crc32c)) FROM expired';
    return parsedArray(await connection.value(select)).map((cells) => {
      const [load, session, request, crc] = cells as [number, number, number, number];
      return expiredChecksum({ load, session, request }) === crc ? { load, session, request } : null;
    });
  },

  /** What repairs said of what was lost, oldest first. */
  async repairs(connection: Connection): Promise<readonly string[]> {
    const rows = await connection.value(
      'SELECT json_group_array(said) FROM (SELECT said FROM repairs ORDER BY number)',
    );
    return parsedArray(rows).map(String);
  },
};

export async function databaseSize(connection: Connection): Promise<DatabaseSize> {
  const pages = Number(await connection.value('PRAGMA page_count'));
  const freePages = Number(await connection.value('PRAGMA freelist_count'));
  return { usedBytes: (pages - freePages) * pageBytes, freePages };
}

/** Reads records of a database that may be damaged, or is not this process's to write. */
export async function recordReader(connection: Connection): Promise<{
  readonly page: (after: number, through: number) => Promise<readonly unknown[]>;
  readonly body: (number: number) => Promise<SqliteValue>;
}> {
  const page = await connection.prepare(selectPage);
  const body = await connection.prepare(selectBody);
  return {
    page: async (after, through) => parsedArray(await page.value(after, through, limits.journalPageRecords)),
    body: (number) => body.value(number),
  };
}

interface Statements {
  readonly begin: PreparedStatement;
  readonly commit: PreparedStatement;
  readonly records: PreparedStatement;
  readonly hops: PreparedStatement;
  readonly kept: PreparedStatement;
  readonly page: PreparedStatement;
  readonly requestPage: PreparedStatement;
  readonly body: PreparedStatement;
  readonly newestHops: PreparedStatement;
}

/** Opens the file and takes the lock; the connection is closed again if anything fails. */
export async function lockedConnection(folder: string, databaseLimitBytes: number): Promise<Connection> {
  const connection = await Connection.open(join(folder, databaseFileName));
  try {
    await connection.exec(`
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA page_size = ${pageBytes};
      PRAGMA auto_vacuum = INCREMENTAL;
      PRAGMA temp_store = MEMORY;`);
    // The first access to the file: here a locked one is refused.
    const mode = await connection.value('PRAGMA journal_mode = WAL');
    assert(mode === 'wal', 'the file system can hold a WAL');
    await connection.exec(`
      PRAGMA synchronous = FULL;
      PRAGMA wal_autocheckpoint = 0;
      PRAGMA journal_size_limit = ${limits.journalWalBytes};
      PRAGMA max_page_count = ${Math.floor(databaseLimitBytes / pageBytes)};
      BEGIN IMMEDIATE; COMMIT;`);
    return connection;
  } catch (error) {
    await connection.close().catch(() => undefined); // What failed first is what has to be told.
    throw error;
  }
}

const expiredChecksum = ({ load, session, request }: ExpiredIds): number =>
  crc32c(`expired ${load} ${session} ${request}`) | 0;

function elements(count: number): string {
  return Array.from({ length: count }, (_, index) => `value ->> ${index}`).join(', ');
}

function parsedArray(text: unknown): readonly unknown[] {
  assert(typeof text === 'string', 'the query gives JSON');
  const rows: unknown = JSON.parse(text);
  assert(Array.isArray(rows), 'the query gives an array');
  return rows;
}

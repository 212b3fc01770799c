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

import { assert } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { Connection, type PreparedStatement, type SqliteValue } from './connection.ts';

/** Counters as they stood when record `through` was the last. */
export interface Kept {
  readonly records: number;
  /** Sizes of the records as `recordBytes` gives them. */
  readonly bytes: number;
  readonly through: number;
}

export const databaseFileName = 'journal.sqlite';

const pageBytes = 4096;
const columns = 'number, kind, load, session, request, step, token, at, body, crc32c';

const insertRecords = `INSERT INTO records (${columns})
  SELECT ${elements(10)} FROM json_each(?1)`;
const insertHops = `INSERT OR REPLACE INTO hops (slot, number, at, load, source, target, frame, rows, bytes, crc32c)
  SELECT (value ->> 0) % ${limits.journalHops}, ${elements(9)} FROM json_each(?1)`;
const updateKept = 'UPDATE kept SET records = ?1, bytes = ?2, through = ?3';
/** Long bodies stand apart, so that a page of them stays small: `null`, then how many bytes they have. */
const selectPage = `SELECT json_group_array(json_array(number, kind, load, session, request, step, token, at,
  CASE WHEN octet_length(body) <= ${limits.journalPageBodyBytes} THEN body END, crc32c, octet_length(body)))
  FROM (SELECT * FROM records WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ${limits.journalPageRecords})`;
const selectBody = 'SELECT body FROM records WHERE number = ?1';
const selectHops = `SELECT json_group_array(json_array(number, at, load, source, target, CAST(frame AS TEXT), rows, bytes,
  crc32c)) FROM (SELECT * FROM hops ORDER BY number DESC LIMIT ?1)`;

export class Store {
  readonly #connection: Connection;
  readonly #statements: Statements;

  private constructor(connection: Connection, statements: Statements) {
    this.#connection = connection;
    this.#statements = statements;
  }

  /** Takes over a connection whose tables are there. */
  static async over(connection: Connection): Promise<Store> {
    return new Store(connection, {
      begin: await connection.prepare('BEGIN IMMEDIATE'),
      commit: await connection.prepare('COMMIT'),
      records: await connection.prepare(insertRecords),
      hops: await connection.prepare(insertHops),
      kept: await connection.prepare(updateKept),
      page: await connection.prepare(selectPage),
      body: await connection.prepare(selectBody),
      newestHops: await connection.prepare(selectHops),
    });
  }

  /** Writes rows, each as `rowText` gives it, and hops in one transaction. Returned means durable. */
  async append(rows: readonly string[], hops: string | null): Promise<void> {
    if (rows.length === 0 && hops === null) return;
    const { begin, records, hops: intoHops, commit } = this.#statements;
    if (hops === null) {
      await records.run(`[${rows.join()}]`); // One statement is a transaction of its own: one turn on the thread pool.
      return;
    }
    await begin.run();
    if (rows.length > 0) await records.run(`[${rows.join()}]`);
    await intoHops.run(hops);
    await commit.run();
  }

  /** Writes the counters down. */
  async keep({ records, bytes, through }: Kept): Promise<void> {
    await this.#statements.kept.run(records, bytes, through);
  }

  async kept(): Promise<Kept & { readonly journal: string }> {
    const row = await this.#connection.row('SELECT journal, records, bytes, through FROM kept');
    const { journal, records, bytes, through } = row ?? {};
    assert(
      typeof journal === 'string' &&
        typeof records === 'number' &&
        typeof bytes === 'number' &&
        typeof through === 'number',
      'the table of kept counters has its row',
    );
    return { journal, records, bytes, through };
  }

  /**
   * The rows after one number up to another, in order; empty at the end. Each is an array of the columns and the length
   * of the body in bytes; a body longer than `limits.journalPageBodyBytes` is `null` and has to be asked for.
   */
  async page(after: number, through: number): Promise<readonly unknown[]> {
    return parsedArray(await this.#statements.page.value(after, through));
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
    await this.#connection.exec(`DELETE FROM records WHERE number > ${number}`);
  }

  /** The first fault SQLite's own check of pages, columns and index finds, or `null`. */
  async fault(): Promise<string | null> {
    const answer = await this.#connection.value('PRAGMA integrity_check(1)');
    return answer === 'ok' ? null : String(answer);
  }

  /** A commit of its own: proves that the file can be written. */
  async proveWritable(): Promise<void> {
    await this.#connection.exec('UPDATE kept SET opened = opened + 1');
  }

  /** Moves the whole WAL into the database file; `emptied` also leaves a WAL of length zero. */
  async checkpoint(wal: 'reused' | 'emptied'): Promise<void> {
    const mode = wal === 'reused' ? 'PASSIVE' : 'TRUNCATE';
    const answer = await this.#connection.row(`PRAGMA wal_checkpoint(${mode})`);
    assert(answer?.busy === 0, 'the only connection is never in its own way');
  }

  /** Size of the database file in bytes, without the WAL. */
  async databaseBytes(): Promise<number> {
    return Number(await this.#connection.value('PRAGMA page_count')) * pageBytes;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

interface Statements {
  readonly begin: PreparedStatement;
  readonly commit: PreparedStatement;
  readonly records: PreparedStatement;
  readonly hops: PreparedStatement;
  readonly kept: PreparedStatement;
  readonly page: PreparedStatement;
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

function elements(count: number): string {
  return Array.from({ length: count }, (_, index) => `value ->> ${index}`).join(', ');
}

function parsedArray(text: unknown): readonly unknown[] {
  assert(typeof text === 'string', 'the query gives JSON');
  const rows: unknown = JSON.parse(text);
  assert(Array.isArray(rows), 'the query gives an array');
  return rows;
}

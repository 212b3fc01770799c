/**
 * The edge to the `sqlite3` package: its callbacks as promises, its errors as `SqliteFailure`, nothing more.
 *
 * Calls run on the thread pool, off the event loop. The package gives no order to calls that overlap, so whoever uses
 * a connection awaits each before the next.
 */
import sqlite3 from 'sqlite3';

import { present } from '../../protocol/assert.ts';

export type SqliteValue = string | number | null;

/** What SQLite answered instead of doing it; `code` is the name of a primary result code, such as `SQLITE_FULL`. */
export class SqliteFailure extends Error {
  readonly code: string;

  constructor(error: Error) {
    super(error.message, { cause: error });
    this.name = 'SqliteFailure';
    this.code = 'code' in error && typeof error.code === 'string' ? error.code : 'SQLITE_ERROR';
  }
}

/** The bundled SQLite as one number: 3.51.3 is 3051003. */
export const sqliteVersionNumber: number = sqlite3.VERSION_NUMBER;

type Finished<Value> = (error: Error | null, value?: Value) => void;

export class Connection {
  readonly #database: sqlite3.Database;
  readonly #statements: PreparedStatement[] = [];

  private constructor(database: sqlite3.Database) {
    this.#database = database;
  }

  /** Opens the file for reading and writing, and creates it if it is absent. A locked file is refused at once. */
  static open(path: string): Promise<Connection> {
    return Connection.#open(path, sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE | sqlite3.OPEN_FULLMUTEX);
  }

  /** Opens a file that is there, for reading only: nothing in it is changed, whatever state it is in. */
  static openToRead(path: string): Promise<Connection> {
    return Connection.#open(path, sqlite3.OPEN_READONLY | sqlite3.OPEN_FULLMUTEX);
  }

  static async #open(path: string, mode: number): Promise<Connection> {
    let database: sqlite3.Database | undefined;
    await settled((finished) => {
      database = new sqlite3.Database(path, mode, finished);
    });
    const opened = present(database, 'an opened database is there');
    opened.configure('busyTimeout', 0);
    return new Connection(opened);
  }

  async exec(sql: string): Promise<void> {
    await settled((finished) => this.#database.exec(sql, finished));
  }

  /** The first row of what the query gives. */
  row(sql: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    return settled<Readonly<Record<string, unknown>>>((finished) => this.#database.get(sql, finished));
  }

  /** The first column of the first row; `null` where there is none. */
  async value(sql: string): Promise<SqliteValue> {
    return firstColumn(await this.row(sql));
  }

  async prepare(sql: string): Promise<PreparedStatement> {
    let statement: sqlite3.Statement | undefined;
    await settled((finished) => {
      statement = this.#database.prepare(sql, finished);
    });
    const prepared = new PreparedStatement(present(statement, 'a prepared statement is there'));
    this.#statements.push(prepared);
    return prepared;
  }

  /** Rolls back what was not committed and closes the file; the lock is free afterwards. */
  async close(): Promise<void> {
    for (const statement of this.#statements.splice(0)) await statement.finalize();
    await settled((finished) => {
      this.#database.close(finished);
    });
  }
}

export class PreparedStatement {
  readonly #statement: sqlite3.Statement;

  constructor(statement: sqlite3.Statement) {
    this.#statement = statement;
  }

  run(...values: readonly SqliteValue[]): Promise<unknown> {
    return settled((finished) => this.#statement.run(...values, finished));
  }

  /** The first column of the first row; `null` where there is none. Reads to the end, so it holds no read lock. */
  async value(...values: readonly SqliteValue[]): Promise<SqliteValue> {
    const rows = await settled<unknown[]>((finished) => this.#statement.all(...values, finished));
    return firstColumn(rows?.[0]);
  }

  async finalize(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#statement.finalize(() => {
        resolve();
      });
    });
  }
}

function settled<Value>(call: (finished: Finished<Value>) => unknown): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    call((error, value) => {
      if (error) reject(new SqliteFailure(error));
      else resolve(value);
    });
  });
}

function firstColumn(row: unknown): SqliteValue {
  if (typeof row !== 'object' || row === null) return null;
  const [value] = Object.values(row) as unknown[];
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

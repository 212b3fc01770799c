/** Reading records in pages, in order of their numbers, each compared with its checksum (J6). */
import { P4Error } from '../../protocol/errors.ts';
import { SqliteFailure } from './connection.ts';
import { corrupt, repairCommand } from './failure.ts';
import { checksum, readRow, type Row } from './record-codec.ts';

/** Where records are read from: one journal's store, one call at a time. */
export interface RecordSource {
  readonly folder: string;
  /** The rows after a number, in order; empty at the end. */
  readonly page: (after: number) => Promise<readonly unknown[]>;
  /** The body of a record whose page left it out. */
  readonly body: (number: number) => Promise<string | number | null>;
}

/**
 * The rows after a number, 0 for all.
 *
 * Throws `JOURNAL_CORRUPT` with the number of the first record that is not what was written.
 */
export async function* readRows(source: RecordSource, after: number): AsyncGenerator<Row, void, undefined> {
  let last = after;
  for (;;) {
    const rows = await readable(source, last, () => source.page(last));
    if (rows.length === 0) return;
    for (const cells of rows) {
      const read = readRow(cells);
      const row = read.row.body === null && read.bodyBytes !== null ? await withBody(source, read.row) : read.row;
      if (checksum(row) !== read.crc32c) throw damaged(source.folder, row.number);
      last = row.number;
      yield row;
    }
  }
}

async function withBody(source: RecordSource, row: Row): Promise<Row> {
  const body = await readable(source, row.number - 1, () => source.body(row.number));
  if (typeof body !== 'string') throw damaged(source.folder, row.number);
  return { ...row, body };
}

async function readable<Value>({ folder }: RecordSource, last: number, read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (error) {
    // A value of a damaged row may have a type that the query cannot put into JSON.
    if (error instanceof SqliteFailure || error instanceof SyntaxError)
      throw corrupt(folder, `the records after number ${last} cannot be read: ${error.message}`, error);
    throw error;
  }
}

function damaged(folder: string, record: number): P4Error {
  return new P4Error('JOURNAL_CORRUPT', {
    folder,
    record,
    why: 'the record is not what its checksum says',
    repair: repairCommand,
  });
}

/** Reading records in pages, in order of their numbers, each compared with its checksum (J6). */
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { SqliteFailure } from './connection.ts';
import { corrupt, repairCommand } from './failure.ts';
import { checksum, readRow, type Row } from './record-codec.ts';

export interface BodySource {
  readonly folder: string;
  /** The body of a record whose page left it out. */
  readonly body: (number: number) => Promise<string | number | null>;
}

/** Where records are read from: one journal's store, one call at a time. */
export interface RecordSource extends BodySource {
  /** The rows after a number, in order; empty at the end. */
  readonly page: (after: number) => Promise<readonly unknown[]>;
}

/** Where some of the records between two numbers are read from. */
export interface RangeSource extends BodySource {
  /** The rows after one number up to another, in order: as many as a page, or a slice, has at most. */
  readonly page: (after: number, through: number) => Promise<readonly unknown[]>;
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
      const row = await checkedRow(source, cells);
      last = row.number;
      yield row;
    }
  }
}

/**
 * The rows of one request behind one number up to another. A page looks at no more than `limits.journalPageNumbers`
 * records, however many of other requests lie between: commits go on meanwhile.
 *
 * Throws as `readRows` does.
 */
export async function* readRequestRows(
  source: RangeSource,
  { after, through }: { readonly after: number; readonly through: number },
): AsyncGenerator<Row, void, undefined> {
  let last = after;
  while (last < through) {
    const end = Math.min(last + limits.journalPageNumbers, through);
    const rows = await readable(source, last, () => source.page(last, end));
    for (const cells of rows) {
      const row = await checkedRow(source, cells);
      last = row.number;
      yield row;
    }
    if (rows.length < limits.journalPageRecords) last = end;
  }
}

/** Some rows in a row, and the number up to which there are no others. */
export interface RowSlice {
  readonly rows: readonly Row[];
  readonly through: number;
}

/**
 * The next rows behind one number up to another: as many as one slice of compaction may read.
 *
 * Throws as `readRows` does.
 */
export async function readSlice(
  source: RangeSource,
  { after, through }: { readonly after: number; readonly through: number },
): Promise<RowSlice> {
  const cells = await readable(source, after, () => source.page(after, through));
  const rows: Row[] = [];
  let bytes = 0;
  for (const cell of cells) {
    const row = await checkedRow(source, cell);
    rows.push(row);
    bytes += row.body?.length ?? 0;
    if (bytes >= limits.journalSliceBytes && rows.length < cells.length) return { rows, through: row.number };
  }
  return { rows, through: cells.length < limits.journalSliceRecords ? through : (rows.at(-1)?.number ?? through) };
}

/** Throws `JOURNAL_CORRUPT` when the row is not what its checksum says. */
async function checkedRow(source: BodySource, cells: unknown): Promise<Row> {
  const read = readRow(cells);
  const row = read.row.body === null && read.bodyBytes !== null ? await withBody(source, read.row) : read.row;
  if (checksum(row) !== read.crc32c) throw damaged(source.folder, row.number);
  return row;
}

async function withBody(source: BodySource, row: Row): Promise<Row> {
  const body = await readable(source, row.number - 1, () => source.body(row.number));
  if (typeof body !== 'string') throw damaged(source.folder, row.number);
  return { ...row, body };
}

async function readable<Value>({ folder }: BodySource, last: number, read: () => Promise<Value>): Promise<Value> {
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

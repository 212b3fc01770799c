/**
 * Reading a journal that may be damaged: every record that is what its checksum says, and the numbers of those that are
 * not there or cannot be read. Nothing is changed, and nothing is passed over in silence (J6).
 */
import { limits } from '../../protocol/limits.ts';
import { SqliteFailure } from './connection.ts';
import { checksum, readRow, type Row } from './record-codec.ts';

/** Numbers of records, both ends included. */
export interface LostRecords {
  readonly from: number;
  readonly to: number;
  readonly why: string;
}

export type Scanned =
  { readonly kind: 'row'; readonly row: Row } | { readonly kind: 'lost'; readonly lost: LostRecords };

export interface ScanSource {
  /** The rows after one number up to another, in order, at most `limits.journalPageRecords`. */
  readonly page: (after: number, through: number) => Promise<readonly unknown[]>;
  readonly body: (number: number) => Promise<string | number | null>;
}

/** The records up to a number, in order. A number without a record is no loss by itself: compaction leaves such. */
export async function* scanRecords(source: ScanSource, through: number): AsyncGenerator<Scanned, void, undefined> {
  let gathered: LostRecords | null = null;
  for await (const scanned of scanAll(source, through)) {
    const joined: LostRecords | null = scanned.kind === 'lost' ? together(gathered, scanned.lost) : null;
    if (gathered !== null && joined === null) yield { kind: 'lost', lost: gathered };
    gathered = joined ?? (scanned.kind === 'lost' ? scanned.lost : null);
    if (scanned.kind === 'row') yield scanned;
  }
  if (gathered !== null) yield { kind: 'lost', lost: gathered };
}

/** One range of two that follow each other; `null` where they do not. */
function together(first: LostRecords | null, next: LostRecords): LostRecords | null {
  return first !== null && first.to === next.from - 1 && first.why === next.why ? { ...first, to: next.to } : null;
}

async function* scanAll(source: ScanSource, through: number): AsyncGenerator<Scanned, void, undefined> {
  for (let after = 0; after < through; after += limits.journalScanNumbers)
    yield* scanWindow(source, after, Math.min(through, after + limits.journalScanNumbers));
}

async function* scanWindow(
  source: ScanSource,
  after: number,
  through: number,
): AsyncGenerator<Scanned, void, undefined> {
  for (let last = after; last < through;) {
    let cells: readonly unknown[];
    try {
      cells = await source.page(last, through);
    } catch (error) {
      if (!isDamage(error)) throw error;
      if (through - last === 1) {
        yield { kind: 'lost', lost: { from: through, to: through, why: error.message } };
        return;
      }
      const middle = last + ((through - last) >> 1);
      yield* scanWindow(source, last, middle);
      yield* scanWindow(source, middle, through);
      return;
    }
    for (const cell of cells) {
      const scanned = await checked(source, cell);
      last = scanned.kind === 'row' ? scanned.row.number : scanned.lost.to;
      yield scanned;
    }
    if (cells.length < limits.journalPageRecords) return;
  }
}

async function checked(source: ScanSource, cells: unknown): Promise<Scanned> {
  const read = readRow(cells);
  const { number } = read.row;
  const why = 'not what its checksum says';
  try {
    const body = read.row.body === null && read.bodyBytes !== null ? await source.body(number) : read.row.body;
    const row = { ...read.row, body: typeof body === 'number' ? null : body };
    if (checksum(row) === read.crc32c) return { kind: 'row', row };
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { kind: 'lost', lost: { from: number, to: number, why: error.message } };
  }
  return { kind: 'lost', lost: { from: number, to: number, why } };
}

/** A damaged page, or a value of a type that the query cannot put into JSON. */
export const isDamage = (error: unknown): error is Error =>
  error instanceof SyntaxError ||
  (error instanceof SqliteFailure && error.code !== 'SQLITE_BUSY' && error.code !== 'SQLITE_NOMEM');

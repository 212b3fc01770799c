/**
 * A journal record as a row of the `records` table, and back.
 *
 * A row's columns, in order: number of the record (from 1), number of its kind, number of its load, session, request,
 * step, token, time of admission in seconds since 1970, body, CRC32C of all the others. A load's number is the number
 * of its `load-admitted` record, so that the other rows are short: an emitted token takes about 30 bytes and has
 * neither time nor body. The body of the other kinds is JSON without the fields that have columns of their own.
 *
 * No column holds a generation (G4): records name their load by load id.
 */
import { crc32c } from '@node-rs/crc32';

import type { LoadId, RequestId, SessionId, TokenId } from '../../protocol/ids.ts';
import type { JournalRecord } from '../records.ts';

/** Numbers of the kinds in the file. They only grow: a number is never used again for another kind. */
const kindNumbers = {
  'load-admitted': 1,
  'node-changed': 2,
  'ring-ready': 3,
  'load-ended': 4,
  'session-opened': 5,
  'session-closed': 6,
  'request-admitted': 7,
  'token-emitted': 8,
  'request-ended': 9,
  'request-settled': 10,
  'ring-suspended': 11,
  'load-told': 13,
} as const satisfies Record<JournalRecord['kind'], number>;

/** A `token-emitted` with `alone`: one bit that needs neither a column nor a body. */
const aloneTokenNumber = 12;

const kindsByNumber: ReadonlyMap<number, JournalRecord['kind']> = new Map([
  ...Object.entries(kindNumbers).map(([kind, number]) => [number, kind as JournalRecord['kind']] as const),
  [aloneTokenNumber, 'token-emitted'],
]);

/** The kind of a row's record, or `null` if a newer p4 wrote it. */
export const kindOf = (row: Row): JournalRecord['kind'] | null => kindsByNumber.get(row.kind) ?? null;

export interface Row {
  readonly number: number;
  readonly kind: number;
  /** Number of the load's `load-admitted` record. */
  readonly load: number;
  readonly session: number | null;
  readonly request: number | null;
  /** Index of an emitted token, `null` for other kinds. */
  readonly step: number | null;
  readonly token: number | null;
  /** Seconds since 1970, `null` for emitted tokens. */
  readonly at: number | null;
  readonly body: string | null;
}

/** What the journal adds to a record when it takes it in. */
export interface Place {
  readonly number: number;
  /** Number of the record's load; for a `load-admitted` record its own. */
  readonly load: number;
  /** Seconds since 1970. */
  readonly at: number;
}

export function encodeRecord(record: JournalRecord, { number, load, at }: Place): Row {
  if (record.kind === 'token-emitted') {
    const { session, request, index: step, token, alone } = record;
    const kind = alone ? aloneTokenNumber : kindNumbers[record.kind];
    return { number, kind, load, session, request, step, token, at: null, body: null };
  }
  const kind = kindNumbers[record.kind];
  const session = 'session' in record ? record.session : null;
  const request = 'request' in record ? record.request : null;
  return { number, kind, load, session, request, step: null, token: null, at, body: encodeBody(record) };
}

/** The record of a row whose checksum was right, or `null` if a newer p4 wrote its kind. */
export function decodeRecord(row: Row, load: LoadId): JournalRecord | null {
  const kind = kindOf(row);
  if (kind === null) return null;
  if (kind === 'token-emitted') {
    return {
      kind,
      load,
      session: row.session as SessionId,
      request: row.request as RequestId,
      index: row.step as number,
      token: row.token as TokenId,
      alone: row.kind === aloneTokenNumber,
    };
  }
  return {
    kind,
    load,
    ...(row.session === null ? {} : { session: row.session }),
    ...(row.request === null ? {} : { request: row.request }),
    ...(row.body === null ? {} : decodeBody(row.body)),
  } as JournalRecord;
}

/** The load id of a `load-admitted` row; `null` for every other kind. */
export function admittedLoad(row: Row): LoadId | null {
  if (row.kind !== kindNumbers['load-admitted'] || row.body === null) return null;
  return decodeBody(row.body).load as LoadId;
}

/** The row as a JSON array in column order, its checksum last: what the insert takes. */
export function rowText(row: Row): string {
  const cells = JSON.stringify(cellsOf(row));
  return `${cells.slice(0, -1)},${checksum(row)}]`;
}

/** A row and its checksum as they were read; what a damaged file holds in their place is not known. */
export interface ReadRow {
  readonly row: Row;
  readonly crc32c: number;
  /** Length of the body in bytes; `row.body` may be `null` although there is one. */
  readonly bodyBytes: number | null;
}

/** A row as the page query gives it, not yet checked. */
export function readRow(cells: unknown): ReadRow {
  const [number, kind, load, session, request, step, token, at, body, crc, bodyBytes] = cells as [
    ...[number, number, number, number | null, number | null, number | null, number | null, number | null],
    ...[string | null, number, number | null],
  ];
  return { row: { number, kind, load, session, request, step, token, at, body }, crc32c: crc, bodyBytes };
}

/** CRC32C as a signed 32-bit integer over the columns in order, body last: SQLite keeps small integers short. */
export function checksum({ number, kind, load, session, request, step, token, at, body }: Row): number {
  const keys = `${number} ${kind} ${load} ${session ?? ''} ${request ?? ''} ${step ?? ''} ${token ?? ''} ${at ?? ''}`;
  return crc32c(`${keys} ${body ?? ''}`) | 0;
}

function cellsOf(row: Row): (number | string | null)[] {
  return [row.number, row.kind, row.load, row.session, row.request, row.step, row.token, row.at, row.body];
}

function encodeBody(record: JournalRecord): string | null {
  const columns = record.kind === 'load-admitted' ? ['kind'] : ['kind', 'load', 'session', 'request'];
  const prompt = record.kind === 'request-admitted' ? record.prompt : null;
  const fields = Object.entries(record).filter(([name]) => name !== 'prompt' && !columns.includes(name));
  const text = JSON.stringify(Object.fromEntries(fields), markedNumbers);
  if (prompt !== null) return `{"prompt":${JSON.stringify(prompt)},${text.slice(1)}`; // Long: spared the replacer.
  return fields.length === 0 ? null : text;
}

function decodeBody(body: string): Readonly<Record<string, unknown>> {
  // Inside a JSON string a quote is escaped, so only a marker has this form.
  const hasMarkers = body.includes('"$bigint":') || body.includes('"$number":');
  return JSON.parse(body, hasMarkers ? unmarkedNumbers : undefined) as Readonly<Record<string, unknown>>;
}

/** JSON has no bigint and no infinity (a logit bias may be one); both are written as objects with one marked field. */
function markedNumbers(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return { $bigint: String(value) };
  if (typeof value === 'number' && !Number.isFinite(value)) return { $number: String(value) };
  return value;
}

function unmarkedNumbers(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if ('$bigint' in value && typeof value.$bigint === 'string') return BigInt(value.$bigint);
  if ('$number' in value && typeof value.$number === 'string') return Number(value.$number);
  return value;
}

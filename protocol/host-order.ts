/**
 * What root on a host may ask the agent there, over a Unix socket in the agent's runtime folder (G7): one line of JSON
 * there, one back. The socket is its user's alone; nothing of it goes over a network.
 */
import { isErrorCode, type ErrorCode, type ErrorFacts, type P4Error } from './errors.ts';
import { loadId, ringName, type LoadId, type RingName } from './ids.ts';
import { JsonFields } from './json-fields.ts';
import { isRecord } from './plain-value.ts';

/** In the runtime folder. */
export const hostSocketName = 'host.sock';

export type HostOrder =
  | { readonly kind: 'forget'; readonly ring: RingName }
  /** The journal's figures. */
  | { readonly kind: 'journal' };

export type HostAnswer =
  /** `stages`: how many were ended here. */
  | { readonly kind: 'forgotten'; readonly stages: number }
  | { readonly kind: 'journal'; readonly report: JournalReport }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly facts: ErrorFacts };

/** What a journal holds. Sizes are in bytes. */
export interface JournalReport {
  readonly state: 'open' | 'failed' | 'closed';
  readonly records: number;
  /** Sizes of the records, as they count against the limit. */
  readonly recordBytes: number;
  /** Number of the last record. */
  readonly lastRecord: number;
  /** Of the database, in use. */
  readonly databaseBytes: number;
  /** Kept for what was admitted and has not ended. */
  readonly reservedBytes: number;
  readonly limitBytes: number;
  /** The newest ones, oldest first, at most `limits.journalNamedLoads`. */
  readonly loads: readonly JournalLoad[];
  /** Older ones. */
  readonly moreLoads: number;
}

export interface JournalLoad {
  readonly ring: RingName;
  readonly load: LoadId;
  readonly stands: boolean;
  /** Sessions and requests of which there are records. */
  readonly sessions: number;
  readonly requests: number;
  /** The highest request number so far. */
  readonly lastRequest: number;
}

export const hostLine = (message: HostOrder | HostAnswer): string => `${JSON.stringify(message)}\n`;

/** @throws STAGE_PROTOCOL, INVALID_ARGUMENT */
export function parseHostOrder(line: Uint8Array): HostOrder {
  const fields = JsonFields.parse('order', line);
  const kind = fields.oneOf('kind', ['forget', 'journal']);
  return kind === 'forget' ? { kind, ring: ringName(fields.text('ring')) } : { kind };
}

/** @throws STAGE_PROTOCOL, INVALID_ARGUMENT */
export function parseHostAnswer(line: Uint8Array): HostAnswer {
  const fields = JsonFields.parse('answer', line);
  const kind = fields.oneOf('kind', ['forgotten', 'journal', 'failed']);
  switch (kind) {
    case 'forgotten':
      return { kind, stages: fields.count('stages') };
    case 'journal':
      return { kind, report: parseReport(fields.object('report')) };
    case 'failed':
      return { kind, ...parseFailure(fields) };
  }
}

function parseReport(fields: JsonFields): JournalReport {
  return {
    state: fields.oneOf('state', ['open', 'failed', 'closed']),
    records: fields.count('records'),
    recordBytes: fields.count('recordBytes'),
    lastRecord: fields.count('lastRecord'),
    databaseBytes: fields.count('databaseBytes'),
    reservedBytes: fields.count('reservedBytes'),
    limitBytes: fields.count('limitBytes'),
    loads: fields.list('loads', (value) => parseLoad(new JsonFields('load', value))),
    moreLoads: fields.count('moreLoads'),
  };
}

function parseLoad(fields: JsonFields): JournalLoad {
  return {
    ring: ringName(fields.text('ring')),
    load: loadId(fields.text('load')),
    stands: fields.boolean('stands'),
    sessions: fields.count('sessions'),
    requests: fields.count('requests'),
    lastRequest: fields.count('lastRequest'),
  };
}

function parseFailure(fields: JsonFields): { readonly code: ErrorCode; readonly facts: ErrorFacts } {
  const code = fields.text('code');
  const facts = fields.get('facts');
  if (!isErrorCode(code) || !isRecord(facts)) return fields.refuse('code', 'an error of p4');
  const known = Object.entries(facts).filter(
    (entry): entry is [string, string | number | boolean] => typeof entry[1] !== 'object',
  );
  return { code, facts: Object.fromEntries(known) };
}

export const hostFailure = (error: P4Error): HostAnswer => ({ kind: 'failed', code: error.code, facts: error.facts });

/**
 * Places at which a test makes the journal fail: every write, commit and sync has one before and one after it.
 *
 * Crash tests kill the process at a point; others have the disk answer with an error there. At a point `before`, nothing
 * of it was written; at one `after`, all of it was: an error there is what a failed sync looks like.
 *
 * Nothing is armed unless the environment of the process has `P4_JOURNAL_FAIL`, or a test hands a failpoint over. The
 * units that deploy installs name their whole environment, and it is not among it. Whoever can set it may end the
 * process as well, and more it cannot do: a failpoint stops work or has it fail as a disk does, it changes no record.
 * One that is armed is said on standard error when the journal is opened.
 */
import process from 'node:process';

import { P4Error } from '../../protocol/errors.ts';
import { SqliteFailure } from './connection.ts';

export const journalPoints = [
  'open.before',
  'open.after',
  'migrate.before',
  'migrate.after',
  'discard.before',
  'discard.after',
  'prove.before',
  'prove.after',
  'append.before',
  /** Rows and hops are written, their transaction is not committed. */
  'append.commit',
  'append.after',
  'mark.before',
  'mark.after',
  'keep.before',
  'keep.after',
  'checkpoint.before',
  'checkpoint.after',
  'remove.before',
  'remove.after',
  'vacuum.before',
  'vacuum.after',
  'close.before',
] as const;
export type JournalPoint = (typeof journalPoints)[number];

/** Called at each point; what it throws is what the disk answers. */
export type Failpoint = (point: JournalPoint) => void;

export const noFailpoint: Failpoint = () => undefined;

/** What SQLite says of these errors of a disk. */
const diskErrors = { EIO: 'SQLITE_IOERR', ENOSPC: 'SQLITE_FULL' } as const;

export const diskError = (kind: keyof typeof diskErrors): SqliteFailure =>
  new SqliteFailure(
    Object.assign(new Error(`${diskErrors[kind]}: ${kind} at a failpoint`), { code: diskErrors[kind] }),
  );

const form = /^([a-z.]+):(kill|EIO|ENOSPC)(?::([1-9][0-9]{0,8})(\+?))?$/;

/**
 * The failpoint that an environment asks for: `P4_JOURNAL_FAIL=<point>:<kill|EIO|ENOSPC>[:<n>[+]]`, at the n-th time it
 * is passed (the first if absent), with `+` from then on.
 *
 * @throws INVALID_ARGUMENT for anything else
 */
export function failpointOf(environment: Readonly<Record<string, string | undefined>>): Failpoint {
  const text = environment['P4_JOURNAL_FAIL'];
  if (text === undefined) return noFailpoint;
  const [, point, action, nth = '1', on] = form.exec(text) ?? [];
  if (!journalPoints.some((known) => known === point) || action === undefined)
    throw new P4Error('INVALID_ARGUMENT', {
      what: 'P4_JOURNAL_FAIL',
      found: text,
      expected: `<point>:<kill|EIO|ENOSPC>[:<n>[+]] with a point of ${journalPoints.join(', ')}`,
    });
  process.stderr.write(`journal: a failpoint is armed: ${text}\n`);
  let passed = 0;
  return (at) => {
    if (at !== point) return;
    passed += 1;
    if (passed !== Number(nth) && !(on === '+' && passed > Number(nth))) return;
    if (action === 'kill') process.kill(process.pid, 'SIGKILL');
    else throw diskError(action === 'EIO' ? 'EIO' : 'ENOSPC');
  };
}

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

interface Armed {
  readonly point: JournalPoint;
  readonly action: 'kill' | keyof typeof diskErrors;
  /** Passings of its point at which it acts: the first of them, and the last. */
  readonly first: number;
  readonly last: number;
}

/**
 * The failpoint that an environment asks for: `P4_JOURNAL_FAIL=<point>:<kill|EIO|ENOSPC>[:<n>[+]]`, at the n-th time it
 * is passed (the first if absent), with `+` from then on; several of them with commas between. What it does, and where,
 * it says on standard error before it does it.
 *
 * @throws INVALID_ARGUMENT for anything else
 */
export function failpointOf(environment: Readonly<Record<string, string | undefined>>): Failpoint {
  const text = environment['P4_JOURNAL_FAIL'];
  if (text === undefined) return noFailpoint;
  const armed = text.split(',').map(armedOf);
  process.stderr.write(`journal: a failpoint is armed: ${text}\n`);
  const passings = new Map<JournalPoint, number>();
  return (point) => {
    const passing = (passings.get(point) ?? 0) + 1;
    passings.set(point, passing);
    const due = armed.find((each) => each.point === point && each.first <= passing && passing <= each.last);
    if (due === undefined) return;
    process.stderr.write(`journal: ${due.action} at ${point}, passing ${passing}\n`);
    if (due.action === 'kill') process.kill(process.pid, 'SIGKILL');
    else throw diskError(due.action);
  };
}

function armedOf(text: string): Armed {
  const [, named, action, nth = '1', on] = form.exec(text) ?? [];
  const point = journalPoints.find((known) => known === named);
  if (point === undefined || (action !== 'kill' && action !== 'EIO' && action !== 'ENOSPC'))
    throw new P4Error('INVALID_ARGUMENT', {
      what: 'P4_JOURNAL_FAIL',
      found: text,
      expected: `<point>:<kill|EIO|ENOSPC>[:<n>[+]] with a point of ${journalPoints.join(', ')}`,
    });
  const first = Number(nth);
  return { point, action, first, last: on === '+' ? Infinity : first };
}

/**
 * One deployment at a time on a host: a file that is made only where none is, with its owner's name and the time.
 *
 * Nothing expires. Whoever finds it held is told by whom and since when; letting go for another is a decision
 * (`--force-unlock`). A lock that an operator's own earlier run left behind, because the host was lost under it, is taken
 * over: the run has ended for certain, and going on is what the operator came for.
 */
import { createHash, randomBytes } from 'node:crypto';

import { P4Error } from '../../protocol/errors.ts';
import { memberOf } from '../../protocol/plain-value.ts';
import { hostLayout } from '../host-layout.ts';
import {
  hasEnded,
  lockOwner,
  parseLockOwner,
  runningHere,
  type LockOwner,
  type RunningProcess,
} from '../lock-owner.ts';
import { runHostScript } from '../ssh/host-script.ts';
import type { Session } from '../ssh/session.ts';
import { shellQuoted } from '../ssh/shell-quoting.ts';
import type { StateFolder } from '../state-folder.ts';

export interface HostLockOwner extends LockOwner {
  /** A digest of the path of its state folder, in which one deployment runs at a time. */
  readonly origin: string;
}

export const hostLockOwner = async ({ root }: StateFolder): Promise<HostLockOwner> => ({
  ...(await lockOwner(randomBytes(16).toString('hex'))),
  origin: createHash('sha256').update(root).digest('hex').slice(0, 32),
});

export interface LockOutcome {
  /** The lock's folder was not there, and was made for it. */
  readonly madeFolder: boolean;
  /** The run of the same operator that had left its lock there; `null` where there was none. */
  readonly tookOver: HostLockOwner | null;
}

/**
 * @param force takes the lock from whoever has it
 * @throws HOST_LOCKED, and what `runHostScript` throws
 */
export async function lockHost(
  session: Session,
  owner: HostLockOwner,
  { force, signal }: { readonly force: boolean; readonly signal: AbortSignal },
): Promise<LockOutcome> {
  const take = (former: string | null): Promise<LockAnswer> => takeLock(session, { owner, former, signal });
  const first = await take(force ? anybodys : null);
  const left = first.kind === 'held' ? ownerIn(first.text) : null;
  const tookOver = left !== null && (await isOfEndedRun(left, owner, runningHere)) ? left : null;
  const answer = tookOver === null ? first : await take(tookOver.token);
  if (answer.kind === 'held') throw held(session, answer.text);
  return { madeFolder: answer.madeFolder, tookOver };
}

type LockAnswer =
  | { readonly kind: 'locked'; readonly madeFolder: boolean }
  /** With the lock's text. */
  | { readonly kind: 'held'; readonly text: string };

interface LockTry {
  readonly owner: HostLockOwner;
  /** Token of the lock that goes first; empty for whatever stands there, `null` for none. */
  readonly former: string | null;
  readonly signal: AbortSignal;
}

const anybodys = '';

async function takeLock(session: Session, { owner, former, signal }: LockTry): Promise<LockAnswer> {
  const text = await runHostScript(session, 'take the lock', { script: lockScript(owner, former), signal });
  const [verdict = '', ...rest] = text.trimEnd().split('\n');
  return verdict === 'held'
    ? { kind: 'held', text: rest.join('\n') }
    : { kind: 'locked', madeFolder: verdict === 'made-folder' };
}

/**
 * Who holds the host, `null` for nobody that would keep this deployment out.
 * @throws what `runHostScript` throws
 */
export async function hostHolder(session: Session, owner: HostLockOwner, signal: AbortSignal): Promise<P4Error | null> {
  const script = `cat ${shellQuoted(hostLayout.lock)} 2>/dev/null || true`;
  const text = await runHostScript(session, 'look at the lock', { script, signal });
  if (text === '') return null;
  const left = ownerIn(text);
  return left !== null && (await isOfEndedRun(left, owner, runningHere)) ? null : held(session, text);
}

/** Whether a lock's owner is a run of this operator, on this machine and with this state folder, that is over. */
export const isOfEndedRun = async (
  lock: HostLockOwner,
  mine: HostLockOwner,
  running: RunningProcess,
): Promise<boolean> =>
  lock.owner === mine.owner && lock.origin === mine.origin && hasEnded(lock.process, mine.process, running);

/** Lets go of the host where this deployment holds it; what is another's stays, and a folder of which nothing came goes. */
export async function unlockHost(session: Session, { token }: HostLockOwner): Promise<void> {
  const lock = shellQuoted(hostLayout.lock);
  const folder = shellQuoted(hostLayout.programs);
  await runHostScript(session, 'let go of the lock', {
    script: `if grep -qsF ${shellQuoted(token)} ${lock}; then rm -f ${lock}; rmdir ${folder} 2>/dev/null || true; fi`,
    timeoutMs: unlockMs,
  });
}

/** A host that does not answer keeps its lock; its next operator is told. */
const unlockMs = 10_000;

/** On a full disk nothing is left behind; `cat` says why it could not write, which a shell's own `printf` does not. */
function lockScript(owner: HostLockOwner, former: string | null): string {
  const lock = shellQuoted(hostLayout.lock);
  const folder = shellQuoted(hostLayout.programs);
  const mine = shellQuoted(`${hostLayout.lock}.${owner.token}`);
  return `set -eu
verdict=locked
if [ ! -d ${folder} ]; then mkdir ${folder}; chmod 755 ${folder}; verdict=made-folder; fi
undo() { rm -f ${mine}; if [ "$verdict" = made-folder ]; then rmdir ${folder}; fi; exit 1; }
printf '%s\\n' ${shellQuoted(JSON.stringify(owner))} | cat >${mine} || undo
${former === null ? '' : former === anybodys ? `rm -f ${lock}` : `if grep -qsF ${shellQuoted(former)} ${lock}; then rm -f ${lock}; fi`}
if ln ${mine} ${lock} 2>/dev/null; then echo "$verdict"; else echo held; cat ${lock}; fi
rm -f ${mine}
`;
}

function held(session: Session, text: string): P4Error {
  const by = ownerIn(text);
  return new P4Error('HOST_LOCKED', {
    host: session.host,
    by: by === null ? 'unknown' : `${by.owner}, process ${by.process.pid}`,
    since: by?.since ?? 'unknown',
    lock: hostLayout.lock,
  });
}

function ownerIn(text: string): HostLockOwner | null {
  const owner = parseLockOwner(text);
  if (owner === null) return null;
  const origin = memberOf(JSON.parse(text), 'origin');
  return { ...owner, origin: typeof origin === 'string' ? origin : '' };
}

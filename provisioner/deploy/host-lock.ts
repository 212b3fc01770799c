/**
 * One deployment at a time on a host: a file that is made only where none is, with its owner's name and the time.
 *
 * Nothing expires. Whoever finds it held is told by whom and since when; letting go for another is a decision
 * (`--force-unlock`). A lock that an operator's own earlier run left behind, because the host was lost under it, is taken
 * over: the run has ended for certain, and going on is what the operator came for.
 */
import process from 'node:process';

import { P4Error } from '../../protocol/errors.ts';
import { systemCode } from '../../protocol/tls-identity.ts';
import type { Session } from '../ssh/session.ts';
import { shellQuoted } from '../ssh/shell-quoting.ts';
import { hostLayout } from '../host-layout.ts';
import { runHostScript } from './host-script.ts';

export interface LockOwner {
  /** `user@machine`. */
  readonly owner: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly since: string;
  /** Random; tells this deployment from every other. */
  readonly token: string;
  /** A digest of the machine and its state folder, in which one deployment runs at a time. */
  readonly origin: string;
}

export interface LockOutcome {
  /** The lock's folder was not there, and was made for it. */
  readonly madeFolder: boolean;
  /** The run of the same operator that had left its lock there; `null` where there was none. */
  readonly tookOver: LockOwner | null;
}

/**
 * @param force takes the lock from whoever has it
 * @throws HOST_LOCKED, and what `runHostScript` throws
 */
export async function lockHost(
  session: Session,
  owner: LockOwner,
  { force, signal }: { readonly force: boolean; readonly signal: AbortSignal },
): Promise<LockOutcome> {
  const take = (former: string | null): Promise<LockAnswer> => takeLock(session, { owner, former, signal });
  const first = await take(force ? anybodys : null);
  const left = first.kind === 'held' ? ownerIn(first.text) : null;
  const tookOver = left !== null && hasEnded(left, owner, isRunning) ? left : null;
  const answer = tookOver === null ? first : await take(tookOver.token);
  if (answer.kind === 'held') throw held(session, answer.text);
  return { madeFolder: answer.madeFolder, tookOver };
}

type LockAnswer =
  | { readonly kind: 'locked'; readonly madeFolder: boolean }
  /** With the lock's text. */
  | { readonly kind: 'held'; readonly text: string };

interface LockTry {
  readonly owner: LockOwner;
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
 * Whether a lock's owner is a run of this operator, on this machine and with this state folder, that is over.
 * @param isAlive whether a process of this number runs here
 */
export const hasEnded = (lock: LockOwner, mine: LockOwner, isAlive: (pid: number) => boolean): boolean =>
  lock.owner === mine.owner && lock.origin === mine.origin && (lock.pid === mine.pid || !isAlive(lock.pid));

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) !== 'ESRCH';
  }
}

/** Lets go of the host where this deployment holds it; what is another's stays. */
export async function unlockHost(session: Session, { token }: LockOwner): Promise<void> {
  const lock = shellQuoted(hostLayout.lock);
  await runHostScript(session, 'let go of the lock', {
    script: `if grep -qsF ${shellQuoted(token)} ${lock}; then rm -f ${lock}; fi`,
    timeoutMs: unlockMs,
  });
}

/** A host that does not answer keeps its lock; its next operator is told. */
const unlockMs = 10_000;

/** On a full disk nothing is left behind; `cat` says why it could not write, which a shell's own `printf` does not. */
function lockScript(owner: LockOwner, former: string | null): string {
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
    by: by === null ? 'unknown' : `${by.owner}, process ${by.pid}`,
    since: by?.since ?? 'unknown',
    lock: hostLayout.lock,
  });
}

function ownerIn(text: string): LockOwner | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return null;
    const { owner, pid, since, token, origin }: Partial<Record<keyof LockOwner, unknown>> = value;
    const isOwner = typeof owner === 'string' && typeof since === 'string' && typeof token === 'string';
    if (!isOwner || typeof pid !== 'number' || token === anybodys) return null;
    return { owner, pid, since, token, origin: typeof origin === 'string' ? origin : '' };
  } catch {
    return null;
  }
}

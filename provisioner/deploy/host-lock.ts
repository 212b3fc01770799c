/**
 * One deployment at a time on a host: a file that is made only where none is, with its owner's name and the time.
 *
 * Nothing expires. Whoever finds it held is told by whom and since when; letting go for another is a decision
 * (`--force-unlock`).
 */
import { P4Error } from '../../protocol/errors.ts';
import type { Session } from '../ssh/session.ts';
import { shellQuoted } from '../ssh/shell-quoting.ts';
import { hostLayout } from './host-layout.ts';
import { runHostScript } from './host-script.ts';

export interface LockOwner {
  /** `user@machine`. */
  readonly owner: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly since: string;
  /** Random; tells this deployment from every other. */
  readonly token: string;
}

export interface LockOutcome {
  /** The lock's folder was not there, and was made for it. */
  readonly madeFolder: boolean;
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
  const text = await runHostScript(session, 'take the lock', { script: lockScript(owner, force), signal });
  const [verdict = '', ...rest] = text.trimEnd().split('\n');
  if (verdict === 'held') throw held(session, rest.join('\n'));
  return { madeFolder: verdict === 'made-folder' };
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

function lockScript(owner: LockOwner, force: boolean): string {
  const lock = shellQuoted(hostLayout.lock);
  const folder = shellQuoted(hostLayout.programs);
  const mine = `${hostLayout.lock}.${owner.token}`;
  return `set -eu
verdict=locked
if [ ! -d ${folder} ]; then mkdir ${folder}; chmod 755 ${folder}; verdict=made-folder; fi
printf '%s\\n' ${shellQuoted(JSON.stringify(owner))} >${shellQuoted(mine)}
${force ? `rm -f ${lock}` : ''}
if ln ${shellQuoted(mine)} ${lock} 2>/dev/null; then echo "$verdict"; else echo held; cat ${lock}; fi
rm -f ${shellQuoted(mine)}
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
    const { owner, pid, since, token }: Partial<Record<keyof LockOwner, unknown>> = value;
    const isOwner = typeof owner === 'string' && typeof since === 'string' && typeof token === 'string';
    return isOwner && typeof pid === 'number' ? { owner, pid, since, token } : null;
  } catch {
    return null;
  }
}

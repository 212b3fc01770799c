/**
 * One command at a time at a file of the state folder.
 *
 * The lock is a file made only where none is; it names its owner. A lock whose process has ended is taken over, by one
 * command alone: who takes over the lock of token T holds the lock `<lock>.<T>` while it looks whether T still stands
 * there and puts its own in its place. T's owner is gone and nobody else may, so what it saw still holds.
 */
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { link, open, rename, rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { systemCode } from '../protocol/tls-identity.ts';
import { ownerFileMode, readIfThere, unwritable } from './durable-file.ts';
import {
  hasEnded,
  lockOwner,
  ownerText,
  ownIdentity,
  parseLockOwner,
  runningHere,
  type LockOwner,
} from './lock-owner.ts';

const retryMs = 20;

/** A lock that was taken over. */
export interface Takeover {
  readonly lock: string;
  readonly from: LockOwner;
}

/** Says `takeover` of every lock that this process takes over. */
export const stateLocks = new EventEmitter<{ takeover: [Takeover] }>();

/**
 * Runs an action while this process alone holds `<path>.lock`. The folder has to be there.
 *
 * @param waitMs how long to wait for another owner
 * @throws STATE_BUSY, STATE_UNREADABLE, STATE_UNWRITABLE
 */
export async function whileLocked<Result>(
  path: string,
  action: () => Promise<Result>,
  waitMs = limits.stateLockMs,
): Promise<Result> {
  const lock = `${path}.lock`;
  const token = await acquire(lock, performance.now() + waitMs);
  try {
    return await action();
  } finally {
    await release(lock, token);
  }
}

/** @returns the token of the lock that is held now */
async function acquire(lock: string, deadline: number): Promise<string> {
  const token = randomBytes(8).toString('hex');
  const mine = await lockOwner(token);
  for (;;) {
    if (await isMade(lock, mine)) return token;
    const former = await standingOwner(lock);
    if (former !== null && (await hasEnded(former.process, await ownIdentity(), runningHere))) {
      if (await isTakenOver({ lock, mine, former, deadline })) return token;
    } else if (performance.now() >= deadline) throw await busy(lock);
    else await pause(retryMs);
  }
}

/** Whole or not at all: a lock that does not say whose it is would be nobody's to take over. */
async function isMade(lock: string, mine: LockOwner): Promise<boolean> {
  const whole = `${lock}.${mine.token}.new`;
  try {
    await writeOwner(whole, mine);
    await link(whole, lock);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw unwritable(lock, error);
  } finally {
    await rm(whole, { force: true }).catch(() => undefined);
  }
}

interface TakeoverTry {
  readonly lock: string;
  readonly mine: LockOwner;
  readonly former: LockOwner;
  readonly deadline: number;
}

async function isTakenOver({ lock, mine, former, deadline }: TakeoverTry): Promise<boolean> {
  const succession = `${lock}.${former.token}`;
  const held = await acquire(succession, deadline);
  try {
    const standing = await standingOwner(lock);
    if (standing?.token !== former.token) return false;
    const whole = `${lock}.${mine.token}.new`;
    await writeOwner(whole, mine);
    await rename(whole, lock);
  } catch (error) {
    throw error instanceof P4Error ? error : unwritable(lock, error);
  } finally {
    await release(succession, held);
  }
  stateLocks.emit('takeover', { lock, from: former });
  return true;
}

async function writeOwner(path: string, owner: LockOwner): Promise<void> {
  const file = await open(path, 'wx', ownerFileMode);
  try {
    await file.writeFile(`${JSON.stringify(owner)}\n`);
    // After a power loss a lock still says whose it was.
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** A lock that somebody else deleted, and another command made anew, is that one's. */
async function release(lock: string, token: string): Promise<void> {
  const standing = await standingOwner(lock);
  if (standing?.token === token) await rm(lock, { force: true });
}

/** Whose a lock is; `null` where none stands, or nobody's name is in it. */
const standingOwner = async (lock: string): Promise<LockOwner | null> =>
  parseLockOwner((await readIfThere(lock)) ?? '');

async function busy(lock: string): Promise<P4Error> {
  const owner = await standingOwner(lock);
  return new P4Error('STATE_BUSY', { lock, owner: owner === null ? 'unknown' : ownerText(owner) });
}

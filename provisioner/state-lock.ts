/**
 * One command at a time at a file of the state folder.
 *
 * The lock is a file made only where none is. It names its owner's process; a lock whose process is gone is not taken
 * over, since two commands that both find it stale would take it from each other: its path is named instead.
 */
import { rm, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { systemCode } from '../protocol/tls-identity.ts';
import { ownerFileMode, readIfThere, unwritable } from './durable-file.ts';

const retryMs = 20;

/**
 * Runs an action while this process alone holds `<path>.lock`. The folder has to be there.
 *
 * @param waitMs how long to wait for another owner
 * @throws STATE_BUSY, STATE_UNWRITABLE
 */
export async function whileLocked<Result>(
  path: string,
  action: () => Promise<Result>,
  waitMs = limits.stateLockMs,
): Promise<Result> {
  const lock = `${path}.lock`;
  await acquire(lock, waitMs);
  try {
    return await action();
  } finally {
    await rm(lock, { force: true });
  }
}

async function acquire(lock: string, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (!(await isMade(lock))) {
    if (performance.now() >= deadline) throw await busy(lock);
    await pause(retryMs);
  }
}

async function isMade(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, `${process.pid}\n`, { flag: 'wx', mode: ownerFileMode });
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw unwritable(lock, error);
  }
}

async function busy(lock: string): Promise<P4Error> {
  const owner = Number((await readIfThere(lock)) ?? NaN);
  const isKnown = Number.isInteger(owner) && owner > 0;
  return new P4Error('STATE_BUSY', { lock, owner: isKnown ? ownerText(owner) : 'unknown' });
}

function ownerText(pid: number): string {
  try {
    process.kill(pid, 0);
    return `process ${pid}`;
  } catch (error) {
    return systemCode(error) === 'ESRCH' ? `process ${pid}, which is gone` : `process ${pid}`;
  }
}

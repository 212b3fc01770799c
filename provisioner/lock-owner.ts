/**
 * Who holds a lock of the state folder, and whether its process has ended.
 *
 * Only a process of this machine can be looked for, by its number and the time it started: numbers are given again.
 */
import { createHash } from 'node:crypto';
import { readFile, readlink } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';

import { memberOf } from '../protocol/plain-value.ts';
import { systemCode } from '../protocol/tls-identity.ts';

export interface LockOwner {
  /** `user@machine`. */
  readonly owner: string;
  readonly process: ProcessIdentity;
  /** Since when it holds the lock, ISO 8601. */
  readonly since: string;
  /** Random; tells this lock from every other. */
  readonly token: string;
}

/** A process among all that ever ran. An empty text where the system does not say. */
export interface ProcessIdentity {
  readonly pid: number;
  /** A digest of the machine's id and the namespace that the number is of. */
  readonly place: string;
  /** Changes whenever the machine starts. */
  readonly boot: string;
  /** Changes with every process of one number. */
  readonly start: string;
}

/** What runs under a number here: the `start` of its identity, `null` for nothing. */
export type RunningProcess = (pid: number) => Promise<string | null>;

/** @param mine a process of the machine that is asked */
export async function hasEnded(
  { pid, place, boot, start }: ProcessIdentity,
  mine: ProcessIdentity,
  running: RunningProcess,
): Promise<boolean> {
  if (place === '' || place !== mine.place) return false;
  if (boot !== mine.boot) return true;
  const found = await running(pid);
  return found === null || (found !== '' && start !== '' && found !== start);
}

export const lockOwner = async (token: string): Promise<LockOwner> => ({
  owner: `${userInfo().username}@${hostname()}`,
  process: await ownIdentity(),
  since: new Date().toISOString(),
  token,
});

export const ownerText = ({ owner, process: { pid }, since }: LockOwner): string =>
  `${owner}, process ${pid}, since ${since}`;

/** `null` for anything but what `JSON.stringify` makes of an owner. */
export function parseLockOwner(text: string): LockOwner | null {
  const value = jsonOrNull(text);
  const identity = memberOf(value, 'process');
  const [owner, since, token] = ['owner', 'since', 'token'].map((key) => memberOf(value, key));
  const [place, boot, start] = ['place', 'boot', 'start'].map((key) => memberOf(identity, key));
  const pid = memberOf(identity, 'pid');
  if (typeof owner !== 'string' || typeof since !== 'string' || typeof pid !== 'number') return null;
  if (typeof place !== 'string' || typeof boot !== 'string' || typeof start !== 'string') return null;
  // It becomes part of a file's name.
  if (typeof token !== 'string' || !/^[0-9a-f]+$/.test(token)) return null;
  return { owner, process: { pid, place, boot, start }, since, token };
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

let own: Promise<ProcessIdentity> | null = null;

/** The identity of this very process. */
export function ownIdentity(): Promise<ProcessIdentity> {
  own ??= readIdentity();
  return own;
}

async function readIdentity(): Promise<ProcessIdentity> {
  const [machine, boot, namespace, start] = await Promise.all([
    textOf('/etc/machine-id'),
    textOf('/proc/sys/kernel/random/boot_id'),
    readlink('/proc/self/ns/pid').catch(() => ''),
    runningHere(process.pid),
  ]);
  const whole = `${machine === '' ? hostname() : machine} ${namespace}`;
  const place = createHash('sha256').update(whole).digest('hex').slice(0, 32);
  return { pid: process.pid, place, boot, start: start ?? '' };
}

/** The process of a number on this machine. */
export const runningHere: RunningProcess = async (pid) => {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCode(error) === 'ESRCH') return null;
  }
  return startIn(await textOf(`/proc/${pid}/stat`));
};

/** Field 22 of proc(5)'s `stat`: the clock ticks from boot to the process's start. Its second field may hold anything. */
const startIn = (stat: string): string => stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';

const textOf = async (path: string): Promise<string> => {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.trim();
};

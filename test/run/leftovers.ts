/**
 * What a tier left behind: processes that still run, files in the temporary folder that tests were given.
 *
 * Every process a test starts inherits a mark in its environment, however it is detached; /proc tells who carries it.
 * Agents and stages of this checkout that do not carry it may belong to somebody at work beside the tests. They are named
 * and left alone, except in CI, where nobody is.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Name of the environment variable that marks the processes of one test run. */
export const markName = 'P4_TEST_RUN';

export interface LiveProcess {
  readonly pid: number;
  /** Its arguments, joined by spaces. */
  readonly command: string;
  /** Whether it carries the mark of this test run. */
  readonly isMarked: boolean;
}

export interface ProcessSearch {
  /** The value of the mark. */
  readonly mark: string;
  /** The checkout whose agents and stages are looked for. */
  readonly root: string;
  /** Agents and stages that ran before the tier began: not of its making. */
  readonly before: ReadonlySet<number>;
}

/** Processes of this test run, and agents and stages of the checkout that are new, by pid. */
export function findProcesses({ mark, root, before }: ProcessSearch): readonly LiveProcess[] {
  const marker = `${markName}=${mark}`;
  const mains = ['agent', 'stage'].map((folder) => join(root, 'dist', folder, 'main.js'));
  return pids().flatMap((pid) => {
    const words = readList(pid, 'cmdline');
    // A process that has ended and waits to be collected has no command line.
    if (pid === process.pid || words.length === 0) return [];
    const isMarked = readList(pid, 'environ').includes(marker);
    const isOurs = words.some((word) => mains.includes(word)) && !before.has(pid);
    return isMarked || isOurs ? [{ pid, command: words.join(' '), isMarked }] : [];
  });
}

/** Agents and stages of the checkout that run now. */
export function runningMains(root: string): ReadonlySet<number> {
  const found = findProcesses({ mark: 'none', root, before: new Set() });
  return new Set(found.map(({ pid }) => pid));
}

/** Waits until the search finds nothing, at most `deadlineMs`; what a tier just stopped may still be ending. */
export async function awaitNoProcesses(search: ProcessSearch, deadlineMs: number): Promise<readonly LiveProcess[]> {
  const endsAtMs = performance.now() + deadlineMs;
  for (;;) {
    const found = findProcesses(search);
    if (found.length === 0 || performance.now() >= endsAtMs) return found;
    await delay(50);
  }
}

/** Ends one process, if it still is the one that was found. */
export function endProcess({ pid, command }: LiveProcess): void {
  if (readList(pid, 'cmdline').join(' ') !== command) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    const isGone = error instanceof Error && 'code' in error && error.code === 'ESRCH';
    if (!isGone) throw error;
  }
}

/** Names of what lies in a folder; none when it does not exist. */
export const leftFiles = (folder: string): readonly string[] => (existsSync(folder) ? readdirSync(folder) : []);

function pids(): readonly number[] {
  if (!existsSync('/proc')) return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** One of the NUL-separated lists of /proc; empty when the process is gone or is another user's. */
function readList(pid: number, name: 'cmdline' | 'environ'): readonly string[] {
  try {
    return readFileSync(`/proc/${String(pid)}/${name}`, 'utf8')
      .split('\0')
      .filter((word) => word !== '');
  } catch {
    return [];
  }
}

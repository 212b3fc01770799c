/** Traces the system calls of a process that runs, with the program `strace`. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';

import { P4Error } from '../../protocol/errors.ts';
import { preparePackages, type DebianPackage } from '../run/debian-packages.ts';
import { tracedCalls } from './system-calls.ts';

const stracePackage: DebianPackage = {
  name: 'strace',
  reason: 'shows what an agent asks of the system for a token',
  neededBy: [],
};

/**
 * Makes the program present: as root it is installed, for anybody else it has to be there.
 * @throws TRACE_UNAVAILABLE
 */
export async function requireStrace(): Promise<void> {
  if (await isThere()) return;
  const prepared = preparePackages([stracePackage], process.getuid?.() === 0);
  if (prepared.kind === 'missing') throw new P4Error('TRACE_UNAVAILABLE', { program: 'strace', why: prepared.why });
  if (!(await isThere())) throw new P4Error('TRACE_UNAVAILABLE', { program: 'strace', why: 'it does not run' });
}

const isThere = (): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn('strace', ['--version'], { stdio: 'ignore' });
    child.once('error', () => {
      resolve(false);
    });
    child.once('exit', (status) => {
      resolve(status === 0);
    });
  });

export interface Traced {
  readonly pid: number;
  /** File for the trace; it is made. */
  readonly path: string;
}

/**
 * Runs the work while the process is traced, with all its threads.
 * @returns the trace's lines
 * @throws TRACE_UNAVAILABLE when the process may not be traced
 */
export async function traceWhile({ pid, path }: Traced, work: () => Promise<void>): Promise<readonly string[]> {
  const words = ['-f', '-y', '-s', '0', '-p', String(pid), '-o', path, '-e', `trace=${tracedCalls.join()}`];
  // A group of its own: Ctrl-C reaches the benchmark, which ends it.
  const child = spawn('strace', words, { detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  const ended = new Promise<'ended'>((resolve) => {
    for (const event of ['error', 'close']) {
      child.once(event, () => {
        resolve('ended');
      });
    }
  });
  const attached = new Promise<'attached'>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (/Process \d+ attached/.test(said)) resolve('attached');
    });
  });
  try {
    if ((await Promise.race([attached, ended])) === 'ended') throw notTraced(said);
    const worked = work().then(() => 'worked' as const);
    if ((await Promise.race([worked, ended])) === 'ended') throw notTraced(said);
  } finally {
    child.kill('SIGINT'); // It lets the process go, and ends.
    await ended;
  }
  return (await readFile(path, 'utf8')).split('\n');
}

const notTraced = (said: string): P4Error =>
  new P4Error('TRACE_UNAVAILABLE', { program: 'strace', why: said.trim().split('\n').at(-1) ?? '' });

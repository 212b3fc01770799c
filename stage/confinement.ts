/**
 * Keeps a stage to what its plan gives it of the host: CPUs, and memory. It does so itself, since its agent has no rights
 * over it; called before libllama is loaded, and holds for the whole process.
 *
 * Memory is not locked: V8 gives pages back with `madvise`, which fails on locked ones, and V8 dies of it. Where a stage is a
 * unit of systemd, the unit keeps it out of swap.
 */
import { readdirSync } from 'node:fs';

import koffi from 'koffi';

import { P4Error } from '../protocol/errors.ts';
import { cpusText } from '../protocol/inventory.ts';
import type { StageConfinement } from '../protocol/plan.ts';

/** RLIMIT_DATA of <sys/resource.h>, the same on every architecture that p4 runs on. */
const dataLimit = 2;
/** CPUs that a mask of the kernel has room for: those that a plan can name. */
const maskBytes = 10_000 / 8;
/** ESRCH: the thread has ended. */
const noSuchThread = 3;

/** @throws STAGE_CONFINEMENT when the system refuses */
export function confine({ cpus, memoryLimitBytes }: StageConfinement): void {
  const calls = libc();
  if (memoryLimitBytes !== null) {
    const limit = new BigUint64Array([BigInt(memoryLimitBytes), BigInt(memoryLimitBytes)]);
    insist(calls.setrlimit(dataLimit, limit), { memoryLimitBytes });
  }
  if (cpus !== null) confineThreads(calls, cpus);
}

/** A new thread has the CPUs of the one that made it: when a look finds no other, all have them and keep them. */
function confineThreads(calls: Calls, cpus: NonNullable<StageConfinement['cpus']>): void {
  const mask = cpuMask(cpus);
  const done = new Set<number>();
  const others = (): readonly number[] => threads().filter((thread) => !done.has(thread));
  for (let left = others(); left.length > 0; left = others()) {
    for (const thread of left) {
      const result = calls.setAffinity(thread, maskBytes, mask);
      if (result === 0 || koffi.errno() !== noSuchThread) insist(result, { cpus: cpusText(cpus) });
      done.add(thread);
    }
  }
}

const threads = (): readonly number[] => readdirSync('/proc/self/task').map(Number);

/** One bit a CPU, the lowest first. */
export function cpuMask(cpus: NonNullable<StageConfinement['cpus']>): Uint8Array {
  const mask = new Uint8Array(maskBytes);
  for (const { first, last } of cpus) {
    for (let cpu = first; cpu <= last; cpu += 1) mask[cpu >> 3] = (mask[cpu >> 3] ?? 0) | (1 << (cpu & 7));
  }
  return mask;
}

interface Calls {
  readonly setrlimit: (resource: number, limit: BigUint64Array) => number;
  readonly setAffinity: (thread: number, bytes: number, mask: Uint8Array) => number;
}

function libc(): Calls {
  const library = koffi.load('libc.so.6');
  return {
    setrlimit: library.func('int setrlimit(int resource, const uint64_t *limit)'),
    setAffinity: library.func('int sched_setaffinity(int thread, size_t bytes, const uint8_t *mask)'),
  };
}

function insist(result: number, facts: Readonly<Record<string, string | number>>): void {
  if (result !== 0) throw new P4Error('STAGE_CONFINEMENT', { ...facts, errno: koffi.errno() });
}

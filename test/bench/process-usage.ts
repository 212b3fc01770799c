/** What a process has used, as Linux counts it in `/proc`. */
import { readdirSync, readFileSync } from 'node:fs';

export interface MemoryUse {
  readonly residentBytes: number;
  /** Resident memory that is no file's: heaps, stacks, KV caches. Mapped weights are not in it. */
  readonly anonymousBytes: number;
}

/**
 * CPU time of all threads that the process has now, in milliseconds, to the nanosecond: `stat` counts in hundredths of a
 * second, and a hundred tokens take no more of an agent than ten of those. Threads that have ended are not counted.
 */
export function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) => Number(firstWord(`/proc/${pid}/task/${thread}/schedstat`)));
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}

export function memoryUse(pid: number): MemoryUse {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return { residentBytes: kibibytes(status, 'VmRSS') * 1024, anonymousBytes: kibibytes(status, 'RssAnon') * 1024 };
}

const firstWord = (path: string): string => readFileSync(path, 'utf8').split(' ')[0] ?? '';

const kibibytes = (status: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);

/**
 * What the kernel says of this host. Read one file after another, and never again while a read hangs: a file system that
 * does not answer holds one thread of Node's pool, and not those that the journal needs.
 */
import { readFile, readdir, statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';

import { availableMemory } from '../available-memory.ts';
import type { Samples } from './samples.ts';

/** Order of the first line of /proc/stat (proc(5)), in hundredths of a second. */
const cpuModes = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal'] as const;
const ticksPerSecond = 100;
const resources = ['cpu', 'memory', 'io'] as const;

export interface HostFigureSources {
  readonly folders: { readonly state: string; readonly slices: string };
}

interface Figures {
  /** Seconds, by mode. */
  readonly cpu: readonly (readonly [mode: string, seconds: number])[];
  readonly memoryAvailableBytes: number;
  readonly pressure: readonly (readonly [resource: string, seconds: number])[];
  readonly disks: readonly { readonly folder: string; readonly sizeBytes: number; readonly freeBytes: number }[];
  readonly openFiles: number;
  readonly mostFiles: number;
}

export class HostFigures {
  readonly #sources: HostFigureSources;
  #latest: Figures | null = null;
  #reading: Promise<void> | null = null;

  constructor(sources: HostFigureSources) {
    this.#sources = sources;
  }

  /** Resolves when what is there has been read, or could not be. */
  read(): Promise<void> {
    this.#reading ??= readFigures(this.#sources)
      .then((figures) => {
        this.#latest = figures;
      })
      .finally(() => {
        this.#reading = null;
      });
    return this.#reading;
  }

  add(samples: Samples): void {
    samples.add('p4_host_cpus', {}, availableParallelism());
    samples.add('p4_host_memory_bytes', {}, totalmem());
    const figures = this.#latest;
    if (figures === null) return;
    for (const [mode, seconds] of figures.cpu) samples.add('p4_host_cpu_seconds_total', { mode }, seconds);
    for (const [resource, seconds] of figures.pressure)
      samples.add('p4_host_pressure_seconds_total', { resource }, seconds);
    samples.add('p4_host_memory_available_bytes', {}, figures.memoryAvailableBytes);
    for (const { folder, sizeBytes, freeBytes } of figures.disks) {
      samples.add('p4_disk_size_bytes', { folder }, sizeBytes);
      samples.add('p4_disk_free_bytes', { folder }, freeBytes);
    }
    samples.add('process_open_fds', {}, figures.openFiles);
    samples.add('process_max_fds', {}, figures.mostFiles);
  }
}

async function readFigures({ folders }: HostFigureSources): Promise<Figures> {
  const cpu = cpuSeconds(await textOf('/proc/stat'));
  const memoryAvailableBytes = await availableMemory().catch(() => NaN);
  const pressure: [string, number][] = [];
  for (const resource of resources) {
    const micros = firstMatch(await textOf(`/proc/pressure/${resource}`), /^some .* total=([0-9]+)$/m);
    if (micros !== null) pressure.push([resource, Number(micros) / 1e6]);
  }
  const openFiles = await countOf('/proc/self/fd');
  const mostFiles = Number(firstMatch(await textOf('/proc/self/limits'), /^Max open files +([0-9]+)/m) ?? NaN);
  // Last: only these may hang.
  const disks: Figures['disks'][number][] = [];
  for (const [folder, path] of Object.entries(folders)) {
    const disk = await statfs(path).catch(() => null);
    if (disk === null) continue;
    const { blocks, bavail, bsize } = disk;
    disks.push({ folder, sizeBytes: blocks * bsize, freeBytes: bavail * bsize });
  }
  return { cpu, memoryAvailableBytes, pressure, disks, openFiles, mostFiles };
}

/** Of the first line: all CPUs together. */
export function cpuSeconds(stat: string): readonly (readonly [mode: string, seconds: number])[] {
  const ticks = /^cpu +([0-9 ]+)$/m.exec(stat)?.[1]?.split(' ') ?? [];
  return cpuModes.flatMap((mode, index) => {
    const value = ticks[index];
    return value === undefined ? [] : [[mode, Number(value) / ticksPerSecond] as const];
  });
}

const firstMatch = (text: string, pattern: RegExp): string | null => pattern.exec(text)?.[1] ?? null;

/** Empty where the kernel has no such file, or does not show it. */
const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

const countOf = (folder: string): Promise<number> =>
  readdir(folder).then(
    (names) => names.length,
    () => NaN,
  );

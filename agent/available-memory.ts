/** Memory of this host that is free to be used. */
import { readFile } from 'node:fs/promises';

/** Linux's own estimate of what can be used without swapping, in bytes. */
export async function availableMemory(): Promise<number> {
  const [, kilobytes] = /^MemAvailable: +([0-9]+) kB$/m.exec(await readFile('/proc/meminfo', 'utf8')) ?? [];
  return Number(kilobytes ?? 0) * 1024;
}

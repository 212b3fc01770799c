/** What this host's CPUs are, for whoever places stages on it. */
import { readFileSync } from 'node:fs';

import { cpusText } from '../../protocol/inventory.ts';
import { rangesOfCpus } from '../../protocol/cpu-range.ts';
import type { CpuGroup } from '../../protocol/cpu-topology.ts';
import { cpuQuota } from './quota.ts';
import { cpuGroups, usableCpus, type ReadFile } from './topology.ts';

export interface HostCpus {
  readonly groups: readonly CpuGroup[];
  /** CPUs' worth of time; 0 for no limit. */
  readonly quota: number;
}

/** Hundreds of small files on a large host: they are read again only when the CPUs are other ones. */
export class HostCpuReader {
  readonly #read: ReadFile;
  #known: { readonly cpus: string; readonly groups: readonly CpuGroup[] } | null = null;

  constructor(read: ReadFile = readText) {
    this.#read = read;
  }

  read(): HostCpus {
    const cpus = cpusText(rangesOfCpus(usableCpus(this.#read)));
    if (this.#known?.cpus !== cpus) this.#known = { cpus, groups: cpuGroups(this.#read) };
    return { groups: this.#known.groups, quota: cpuQuota(this.#read) };
  }
}

/** A file that is not there says nothing. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/**
 * The CPUs of a host that p4 may use, by where they lie: threads of one stage want to be near to each other, and a core that
 * runs two threads at once is one core.
 */
import { cpuRangesOf, cpusOfRanges, rangesOfCpus } from './cpu-range.ts';
import { cpusText } from './inventory.ts';
import { limits } from './limits.ts';
import type { CpuGroupMessage } from './messages.ts';

/** Cores that share their last cache and are of one kind. */
export interface CpuGroup {
  readonly numaNode: number;
  /** Speed relative to the host's other groups, above 0; equal where the host does not tell them apart. */
  readonly capacity: number;
  readonly cores: readonly Core[];
}

/** The CPUs of one core, rising; more than one where it runs several threads at once. */
export type Core = readonly number[];

export const cpusOfGroups = (groups: readonly CpuGroup[]): readonly number[] =>
  groups.flatMap(({ cores }) => cores.flat());

export const groupMessage = ({ numaNode, capacity, cores }: CpuGroup): CpuGroupMessage => ({
  numaNode,
  capacity,
  cores: cores.map((core) => cpusText(rangesOfCpus(core))),
});

/** What an agent says. @returns `null` where it does not say, or not what a host can be */
export function readGroups(messages: readonly CpuGroupMessage[]): readonly CpuGroup[] | null {
  const groups: CpuGroup[] = [];
  const seen = new Set<number>();
  for (const { numaNode, capacity, cores } of messages) {
    if (capacity < 1 || cores.length === 0) return null;
    const read: Core[] = [];
    for (const text of cores) {
      const core = readCore(text);
      if (core === null || core.some((cpu) => seen.has(cpu))) return null;
      for (const cpu of core) seen.add(cpu);
      if (seen.size > limits.hostCpus) return null;
      read.push(core);
    }
    groups.push({ numaNode, capacity, cores: read });
  }
  return groups.length === 0 ? null : groups;
}

function readCore(text: string): Core | null {
  const reading = cpuRangesOf(text);
  return reading.kind === 'ranges' ? cpusOfRanges(reading.ranges) : null;
}

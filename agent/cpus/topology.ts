/**
 * The CPUs that this process may use, read from what Linux shows of them: which are threads of one core, which cores share
 * their last cache, on which NUMA node and of which kind they are. What a file does not say is left out, never made up: a
 * CPU without siblings is a core, one without a cache lies on its node alone.
 *
 * Pure: files come through a function.
 */
import { assert } from '../../protocol/assert.ts';
import { cpuRangesOf, cpusOfRanges } from '../../protocol/cpu-range.ts';
import type { Core, CpuGroup } from '../../protocol/cpu-topology.ts';
import { limits } from '../../protocol/limits.ts';

/** The text of a file; empty where it cannot be read. */
export type ReadFile = (path: string) => string;

export const cpuFolder = '/sys/devices/system/cpu';
export const onlinePath = `${cpuFolder}/online`;
const nodesPath = '/sys/devices/system/node/has_cpu';
const statusPath = '/proc/self/status';
/** Where Linux lists the slower kind of a processor of two kinds, without saying how slow. */
const slowPath = '/sys/devices/cpu_atom/cpus';

/** Capacities of kinds that are told apart by name alone. */
const [evenCapacity, slowCapacity] = [1024, 512];

interface CpuPlace {
  readonly cpu: number;
  /** The lowest CPU of its core. */
  readonly core: number;
  /** The lowest CPU that has the same last cache; -1 where none is shared with another core. */
  readonly cache: number;
  readonly numaNode: number;
  readonly capacity: number;
}

/** The CPUs of this process that are there, rising: at least one, and at most `limits.hostCpus`. */
export function usableCpus(read: ReadFile): readonly number[] {
  const [, allowedText = ''] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(read(statusPath)) ?? [];
  const allowed = listOf(allowedText);
  // A CPU that was taken away stays in the list of those that are allowed.
  const online = new Set(listOf(read(onlinePath)));
  const there = online.size === 0 ? allowed : allowed.filter((cpu) => online.has(cpu));
  return there.length === 0 ? [0] : there.slice(0, limits.hostCpus);
}

/** In the order of their lowest CPUs. */
export function cpuGroups(read: ReadFile): readonly CpuGroup[] {
  const cpus = usableCpus(read);
  const nodes = nodesOf(read);
  const slow = new Set(listOf(read(slowPath)));
  const places = cpus.map((cpu) => placeOf(cpu, { read, nodes, slow }));
  const groups = new Map<string, CpuPlace[]>();
  for (const place of places) {
    const key = `${place.numaNode} ${place.cache} ${place.capacity}`;
    groups.set(key, [...(groups.get(key) ?? []), place]);
  }
  return [...groups.values()].map(groupOf);
}

function groupOf(places: readonly CpuPlace[]): CpuGroup {
  const [first] = places;
  assert(first !== undefined, 'a group has a CPU');
  const cores = new Map<number, Core>();
  for (const { cpu, core } of places) cores.set(core, [...(cores.get(core) ?? []), cpu]);
  return { numaNode: first.numaNode, capacity: first.capacity, cores: [...cores.values()] };
}

interface HostFiles {
  readonly read: ReadFile;
  readonly nodes: ReadonlyMap<number, number>;
  readonly slow: ReadonlySet<number>;
}

function placeOf(cpu: number, { read, nodes, slow }: HostFiles): CpuPlace {
  const own = `${cpuFolder}/cpu${cpu}`;
  // The former name is all that kernels before 5.3 have.
  const siblings = withItself(
    cpu,
    read(`${own}/topology/core_cpus_list`) || read(`${own}/topology/thread_siblings_list`),
  );
  const sharers = lastCacheOf(cpu, own, read);
  const isShared = sharers.some((other) => !siblings.includes(other));
  return {
    cpu,
    core: Math.min(...siblings),
    cache: isShared ? Math.min(...sharers) : -1,
    numaNode: nodes.get(cpu) ?? numberIn(read(`${own}/topology/physical_package_id`)) ?? 0,
    capacity: numberIn(read(`${own}/cpu_capacity`)) || (slow.has(cpu) ? slowCapacity : evenCapacity),
  };
}

/** The CPUs that share the largest cache: it has the highest index. */
function lastCacheOf(cpu: number, own: string, read: ReadFile): readonly number[] {
  const lists = [4, 3, 2].map((index) => read(`${own}/cache/index${index}/shared_cpu_list`));
  return withItself(cpu, lists.find((list) => list !== '') ?? '');
}

/** NUMA nodes by CPU; none where the kernel knows none. */
function nodesOf(read: ReadFile): ReadonlyMap<number, number> {
  return new Map(
    listOf(read(nodesPath)).flatMap((node) =>
      listOf(read(`/sys/devices/system/node/node${node}/cpulist`)).map((cpu) => [cpu, node] as const),
    ),
  );
}

const withItself = (cpu: number, list: string): readonly number[] => {
  const cpus = listOf(list);
  return cpus.includes(cpu) ? cpus : [cpu];
};

/** Empty for a text that is no list. */
function listOf(text: string): readonly number[] {
  const reading = cpuRangesOf(text.trim());
  return reading.kind === 'ranges' ? cpusOfRanges(reading.ranges) : [];
}

const numberIn = (text: string): number | null => (/^[0-9]{1,9}$/.test(text.trim()) ? Number(text) : null);

/**
 * Which cores of a machine several stages get: each its own, near to each other where that is possible. One cache is better
 * than one NUMA node, one node better than several; within that the tightest place is taken, so that large ones stay whole.
 * Pure.
 */
import type { Core, CpuGroup } from '../../protocol/cpu-topology.ts';

/**
 * @param groups what is free
 * @param wishes how many cores each stage wants, at least one
 * @returns the cores of each, in the order of the wishes; `null` where there are not enough
 */
export function packCores(groups: readonly CpuGroup[], wishes: readonly number[]): readonly (readonly Core[])[] | null {
  const free = groups.map((group) => ({ ...group, cores: [...group.cores] }));
  const packed = new Map<number, readonly Core[]>();
  // The largest first: the others still fit into what it leaves.
  const order = wishes.map((cores, wish) => ({ cores, wish })).sort((one, other) => other.cores - one.cores);
  for (const { cores, wish } of order) {
    const taken = take(free, cores);
    if (taken === null) return null;
    packed.set(wish, taken);
  }
  return wishes.map((_cores, wish) => packed.get(wish) ?? []);
}

interface FreeGroup extends CpuGroup {
  readonly cores: Core[];
}

function take(free: readonly FreeGroup[], wanted: number): readonly Core[] | null {
  const nodes = [...new Set(free.map(({ numaNode }) => numaNode))].map((node) =>
    free.filter(({ numaNode }) => numaNode === node),
  );
  const place =
    tightest(
      free.map((group) => [group]),
      wanted,
    ) ??
    tightest(nodes, wanted) ??
    free;
  if (coresIn(place) < wanted) return null;
  const taken: Core[] = [];
  // As few groups as will do: the fullest first. Sorting keeps the order of equals.
  for (const { cores } of place.toSorted((one, other) => other.cores.length - one.cores.length)) {
    taken.push(...cores.splice(0, wanted - taken.length));
  }
  return taken;
}

/** The one with the least room that has enough, the first of equals. */
function tightest(places: readonly (readonly FreeGroup[])[], wanted: number): readonly FreeGroup[] | null {
  const [best = null] = places
    .filter((place) => coresIn(place) >= wanted)
    .toSorted((one, other) => coresIn(one) - coresIn(other));
  return best;
}

const coresIn = (groups: readonly FreeGroup[]): number => groups.reduce((sum, { cores }) => sum + cores.length, 0);

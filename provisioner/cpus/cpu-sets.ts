/** Which CPUs each stage keeps to that is to be started. Pure. */
import { cpusOfRanges, rangesOfCpus } from '../../protocol/cpu-range.ts';
import { cpusOfGroups, type Core, type CpuGroup } from '../../protocol/cpu-topology.ts';
import type { NodeIndex } from '../../protocol/ids.ts';
import type { CpuRange } from '../../protocol/inventory.ts';
import type { StagePlan } from '../../protocol/plan.ts';
import { packCores } from './core-packing.ts';
import { coresIn, type FreeCores } from './free-cores.ts';
import type { HeldStage } from './machine.ts';
import { isOnGpu, threadSum, writtenCpus } from './written-cpus.ts';

export interface SetParts {
  readonly threads: ReadonlyMap<NodeIndex, number>;
  readonly others: readonly HeldStage[];
  readonly cores: FreeCores;
}

/** CPUs for the stages that none are written for, as far as there are enough. */
export function setsOf(fresh: readonly StagePlan[], parts: SetParts): ReadonlyMap<NodeIndex, readonly CpuRange[]> {
  const { cores, others, threads } = parts;
  const none: ReadonlyMap<NodeIndex, readonly CpuRange[]> = new Map();
  if (!cores.isKnown) return none;
  const open = fresh.filter((stage) => writtenCpus(stage) === null && !isOnGpu(stage));
  const wish = ({ index }: StagePlan): number => threads.get(index) ?? 1;
  const onGpus = fresh.filter((stage) => writtenCpus(stage) === null && isOnGpu(stage));
  const roamers = [...others.filter(({ cpus }) => cpus === null), ...onGpus.map((stage) => ({ threads: wish(stage) }))];
  const roaming = threadSum(roamers);
  const wanted = open.reduce((sum, stage) => sum + wish(stage), 0);
  const hasSlow = coresIn(cores.all) > coresIn(cores.fast);
  const fits = (groups: readonly CpuGroup[], spare: number): boolean => wanted + roaming + spare <= coresIn(groups);
  const groups = fits(cores.fast, hasSlow ? 0 : 1) ? cores.fast : fits(cores.all, 1) ? cores.all : null;
  if (groups !== null) return packed(groups, open, wish) ?? none;
  return sharedSets(open, wish, parts) ?? none;
}

function packed(
  groups: readonly CpuGroup[],
  stages: readonly StagePlan[],
  wish: (stage: StagePlan) => number,
): Map<NodeIndex, readonly CpuRange[]> | null {
  const cores = packCores(groups, stages.map(wish));
  if (cores === null) return null;
  return new Map(stages.map(({ index }, place) => [index, rangesOfCores(cores[place] ?? [])]));
}

/** Too few cores for all: stages with several threads get theirs, and those with one keep off them, on what is left. */
function sharedSets(
  stages: readonly StagePlan[],
  wish: (stage: StagePlan) => number,
  { cores }: SetParts,
): ReadonlyMap<NodeIndex, readonly CpuRange[]> | null {
  const wide = stages.filter((stage) => wish(stage) > 1);
  const narrow = stages.filter((stage) => wish(stage) === 1);
  if (narrow.length === 0 || (wide.length === 0 && !cores.hasKept)) return null;
  const sets = packed(cores.all, wide, wish);
  if (sets === null) return null;
  const taken = new Set([...sets.values()].flatMap(cpusOfRanges));
  const left = cpusOfGroups(cores.all).filter((cpu) => !taken.has(cpu));
  if (left.length === 0) return null;
  for (const { index } of narrow) sets.set(index, rangesOfCpus(left));
  return sets;
}

const rangesOfCores = (cores: readonly Core[]): readonly CpuRange[] => rangesOfCpus(cores.flat());

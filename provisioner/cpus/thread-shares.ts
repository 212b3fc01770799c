/** How many threads each stage gets that is to be started. Pure. */
import { cpusOfRanges } from '../../protocol/cpu-range.ts';
import type { NodeIndex } from '../../protocol/ids.ts';
import type { CpuRange } from '../../protocol/inventory.ts';
import { limits } from '../../protocol/limits.ts';
import { layerCount, type StagePlan } from '../../protocol/plan.ts';
import { coresIn, type FreeCores } from './free-cores.ts';
import type { HeldStage, Machine } from './machine.ts';
import { isOnGpu, threadSum, writtenCpus } from './written-cpus.ts';

export interface ThreadParts {
  readonly machine: Machine;
  readonly others: readonly HeldStage[];
  readonly cores: FreeCores;
}

export function threadsOf(fresh: readonly StagePlan[], parts: ThreadParts): ReadonlyMap<NodeIndex, number> {
  const threads = new Map<NodeIndex, number>();
  const open: StagePlan[] = [];
  for (const stage of fresh) {
    const set = writtenCpus(stage);
    if (stage.threads !== 'auto') threads.set(stage.index, stage.threads);
    else if (isOnGpu(stage)) threads.set(stage.index, 1);
    else if (set !== null) threads.set(stage.index, shareOfSet(stage, set, { fresh, ...parts }));
    else open.push(stage);
  }
  const shares = sharesOf(coresToShare(fresh, threads, parts), open);
  return new Map([...threads, ...shares]);
}

/** Cores for the stages that nothing is written of: one is left to the agent, and none taken twice. */
function coresToShare(
  fresh: readonly StagePlan[],
  threads: ReadonlyMap<NodeIndex, number>,
  { machine, others, cores }: ThreadParts,
): number {
  const written = fresh.map((stage) => ({ threads: threads.get(stage.index) ?? 0, cpus: writtenCpus(stage) }));
  const fixed = [...others, ...written];
  // Those that keep to CPUs have taken their cores out of the free ones.
  const roaming = threadSum(fixed.filter(({ cpus }) => cpus === null));
  const agents = coresIn(cores.all) > coresIn(cores.fast) ? 0 : 1;
  const free = coresIn(cores.fast) - roaming - agents;
  return machine.quota === null ? free : Math.min(free, Math.floor(machine.quota) - threadSum(fixed) - 1);
}

/** As even as can be: what is left over goes to the stages with the most layers. */
function sharesOf(cores: number, stages: readonly StagePlan[]): ReadonlyMap<NodeIndex, number> {
  if (stages.length === 0) return new Map();
  const even = Math.max(0, Math.floor(cores / stages.length));
  const rest = Math.max(0, cores - even * stages.length);
  const largest = stages.toSorted((one, other) => layerCount(other.layers) - layerCount(one.layers));
  return new Map(
    largest.map(({ index }, place) => {
      const share = even + (place < rest ? 1 : 0);
      return [index, Math.min(limits.stageThreads, Math.max(1, share))];
    }),
  );
}

/** The cores of the CPUs that are written for a stage, less what others that keep to some of them have. */
function shareOfSet(
  stage: StagePlan,
  set: readonly CpuRange[],
  { fresh, others, cores }: ThreadParts & { readonly fresh: readonly StagePlan[] },
): number {
  const own = new Set(cpusOfRanges(set));
  const meets = (cpus: readonly CpuRange[] | null): boolean =>
    cpus !== null && cpusOfRanges(cpus).some((cpu) => own.has(cpu));
  const rivals = fresh.filter((other) => other !== stage && meets(writtenCpus(other)));
  const fixed = [
    ...others.filter(({ cpus }) => meets(cpus)).map((other) => other.threads),
    ...rivals.flatMap(({ threads }) => (threads === 'auto' ? [] : [threads])),
  ].reduce((sum, count) => sum + count, 0);
  const sharers = 1 + rivals.filter(({ threads }) => threads === 'auto').length;
  const share = Math.floor((cores.among(set) - fixed) / sharers);
  return Math.min(limits.stageThreads, Math.max(1, share));
}

/**
 * Threads and CPUs of a plan's stages, from what their machines have and what stands on these already. Pure.
 *
 * - What the plan says holds; what stands keeps what it has.
 * - `auto` shares out the physical cores that are left, less one: the agent and the system want to run, too, and a stage with
 *   several threads stands still while one of them waits for a CPU. A stage gets one thread at least.
 * - Stages get CPUs of their own where there are cores enough, with one left over for the agent. Where there are not, those
 *   with several threads get theirs, and those with one share what is left.
 * - A stage whose layers are all on a GPU computes nothing here: one thread, and no CPUs of its own.
 * - What would oversubscribe is said with its sum, for all machines at once.
 */
import { present } from '../../protocol/assert.ts';
import type { NodeIndex } from '../../protocol/ids.ts';
import type { CpuRange } from '../../protocol/inventory.ts';
import type { Plan, StagePlan } from '../../protocol/plan.ts';
import { setsOf } from './cpu-sets.ts';
import { cpuShortfalls } from './cpu-shortfalls.ts';
import { FreeCores } from './free-cores.ts';
import type { Machine } from './machine.ts';
import { threadsOf } from './thread-shares.ts';
import { isOnGpu, threadSum, writtenCpus } from './written-cpus.ts';

/** What a stage computes with. */
export interface StageCpus {
  readonly threads: number;
  /** `null`: all that the host gives to p4. */
  readonly cpus: readonly CpuRange[] | null;
  readonly origin: CpuOrigin;
}

export type CpuOrigin =
  /** It runs already. */
  | { readonly kind: 'stands' }
  | { readonly kind: 'gpu' }
  | { readonly kind: 'decided'; readonly chosen: 'nothing' | 'cpus' | 'threads' | 'both'; readonly room: MachineRoom };

/** What there was to share out, in physical cores. */
export interface MachineRoom {
  readonly cores: number;
  /** Of other rings, and of stages of this one that stand. */
  readonly taken: number;
  readonly forAgent: number;
  /** Stages of the plan that were started there by this load. */
  readonly stages: number;
}

export interface Allotment {
  /** In ring order. */
  readonly stages: readonly StageCpus[];
  /** One sentence for each thing that does not fit; empty where all does. */
  readonly shortfalls: readonly string[];
}

/** @param machines every host of the plan is on one of them */
export function allotCpus(plan: Plan, machines: readonly Machine[]): Allotment {
  const parts = machines.map((machine) => allotMachine(plan, machine));
  const byNode = new Map(parts.flatMap(({ stages }) => [...stages]));
  return {
    stages: plan.stages.map(({ index }) => present(byNode.get(index), 'every stage is on a machine')),
    shortfalls: parts.flatMap(({ shortfalls }) => shortfalls),
  };
}

/** The plan as agents are told it: every stage with its threads and CPUs. */
export const settledPlan = (plan: Plan, allotted: readonly StageCpus[]): Plan => ({
  ...plan,
  stages: plan.stages.map((stage): StagePlan => {
    const { threads, cpus } = present(allotted[stage.index], 'every stage has its threads');
    const memoryLimitBytes = stage.confinement?.memoryLimitBytes ?? null;
    const { index, host, layers, device } = stage;
    const isConfined = cpus !== null || memoryLimitBytes !== null;
    return {
      ...{ index, host, layers, device, threads },
      ...(isConfined ? { confinement: { cpus, memoryLimitBytes } } : {}),
    };
  }),
});

interface MachinePart {
  readonly stages: ReadonlyMap<NodeIndex, StageCpus>;
  readonly shortfalls: readonly string[];
}

function allotMachine(plan: Plan, machine: Machine): MachinePart {
  const own = plan.stages.filter(({ host }) => machine.hosts.includes(host));
  // An agent keeps to what it was told of a ring that it has, also where a stage of it has to be started again.
  const standing = new Map(
    own.flatMap(({ index, host }) => {
      const held = machine.stages.find((one) => one.ring === plan.ring && one.host === host && one.node === index);
      return held === undefined ? [] : [[index, held] as const];
    }),
  );
  const fresh = own.filter(({ index }) => !standing.has(index));
  const others = machine.stages;
  const cores = new FreeCores(machine, [...others.map(({ cpus }) => cpus), ...fresh.map(writtenCpus)]);
  const threads = threadsOf(fresh, { machine, others, cores });
  const sets = setsOf(fresh, { threads, others, cores });
  const started = fresh.map((stage) => ({
    ...{ ring: plan.ring, node: stage.index },
    threads: present(threads.get(stage.index), 'every new stage has threads'),
    cpus: writtenCpus(stage) ?? sets.get(stage.index) ?? null,
  }));
  const taken = threadSum(others);
  const room: MachineRoom = {
    ...{ cores: cores.count, taken, stages: fresh.length },
    forAgent: cores.count > taken + threadSum(started) ? 1 : 0,
  };
  const held = [...standing].map(([index, { threads: count, cpus }]): [NodeIndex, StageCpus] => [
    index,
    { threads: count, cpus, origin: { kind: 'stands' } },
  ]);
  const settled = fresh.map((stage, place): [NodeIndex, StageCpus] => {
    const { threads: count, cpus } = present(started[place], 'every new stage is settled');
    return [stage.index, { threads: count, cpus, origin: originOf(stage, sets.has(stage.index), room) }];
  });
  return { stages: new Map([...held, ...settled]), shortfalls: cpuShortfalls(machine, { fresh: started, others }) };
}

function originOf(stage: StagePlan, hasSet: boolean, room: MachineRoom): CpuOrigin {
  if (isOnGpu(stage) && stage.threads === 'auto') return { kind: 'gpu' };
  const [isThreads, isCpus] = [stage.threads === 'auto', hasSet];
  return {
    kind: 'decided',
    chosen: isThreads ? (isCpus ? 'both' : 'threads') : isCpus ? 'cpus' : 'nothing',
    room,
  };
}

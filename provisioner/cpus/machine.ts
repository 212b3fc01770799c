/**
 * A machine's CPUs and what runs on them, from what agents say. Agents of one machine share it: what the stages of one take,
 * the others do not have.
 */
import { cpuRangesOf } from '../../protocol/cpu-range.ts';
import { readGroups, type CpuGroup } from '../../protocol/cpu-topology.ts';
import type { HostName } from '../../protocol/ids.ts';
import type { CpuRange } from '../../protocol/inventory.ts';
import type { AgentDescription, RingStatus } from '../../protocol/messages.ts';

export interface Machine {
  /** In the order of the fleet. */
  readonly hosts: readonly HostName[];
  /** The CPUs that p4 may use; `null` where only their number is known. Agents of one machine have the same ones. */
  readonly groups: readonly CpuGroup[] | null;
  readonly cpuCount: number;
  /** CPUs' worth of time that its control group leaves it; `null` for no limit. */
  readonly quota: number | null;
  readonly stages: readonly HeldStage[];
}

/** A stage that an agent has, and what it computes with. */
export interface HeldStage {
  readonly host: HostName;
  readonly ring: string;
  readonly node: number;
  readonly threads: number;
  /** The CPUs it keeps to; `null` for all of the machine. */
  readonly cpus: readonly CpuRange[] | null;
}

/** What one agent says. */
export interface AgentAnswer {
  readonly host: HostName;
  readonly description: AgentDescription;
  readonly rings: readonly RingStatus[];
}

/** One for each machine, in the order of the answers. */
export function machinesOf(answers: readonly AgentAnswer[]): readonly Machine[] {
  const machines = new Map<string, AgentAnswer[]>();
  for (const answer of answers) {
    const { machineId } = answer.description;
    // A host that does not say which machine it is shares nothing.
    const key = machineId === '' ? `host ${answer.host}` : machineId;
    machines.set(key, [...(machines.get(key) ?? []), answer]);
  }
  return [...machines.values()].map(machineOf);
}

function machineOf(answers: readonly AgentAnswer[]): Machine {
  const groups = answers.map(({ description }) => readGroups(description.cpuGroups)).find((read) => read !== null);
  const quota = answers.map(({ description }) => description.cpuQuota).find((cpus) => cpus > 0);
  return {
    hosts: answers.map(({ host }) => host),
    groups: groups ?? null,
    cpuCount: Math.max(1, ...answers.map(({ description }) => description.cores)),
    quota: quota ?? null,
    stages: answers.flatMap(({ host, rings }) => rings.flatMap((ring) => heldStages(host, ring))),
  };
}

/** A stage that was lost is started again by its agent: it counts. */
const heldStages = (host: HostName, { ring, nodes }: RingStatus): readonly HeldStage[] =>
  nodes
    .filter(({ state }) => state !== 'stopped' && state !== 'stopping')
    .map(({ node, threads, cpus }) => ({
      ...{ host, ring, node },
      // An agent that does not say is one of before there was a choice.
      threads: Math.max(1, threads),
      cpus: readCpus(cpus),
    }));

function readCpus(text: string): readonly CpuRange[] | null {
  const reading = cpuRangesOf(text);
  return reading.kind === 'ranges' ? reading.ranges : null;
}

/** Whether a plan fits into its hosts' memory and disks: decided before anything moves. Pure. */
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { bytesText } from './text-table.ts';

/** What is wanted of one host, and what it has. */
export interface HostNeed {
  readonly host: HostName;
  /** Empty where it has none. Hosts of one machine share what it has. */
  readonly machineId: string;
  /** Estimates of the stages that are to be loaded and do not run yet. */
  readonly memoryBytes: number;
  readonly memoryAvailableBytes: number;
  /** Of the slices that have to come to it. */
  readonly diskBytes: number;
  readonly diskFreeBytes: number;
}

/** A stage that the plan confines to so much memory: past that it would be ended. */
export interface StageLimit {
  readonly node: number;
  readonly host: HostName;
  /** What a limit would have to be: it counts what a stage sets aside, too, such as the stacks of its threads. */
  readonly memoryBytes: number;
  readonly limitBytes: number;
}

/** @throws PLAN_DOES_NOT_FIT with what is missing, all hosts and stages in one error */
export function requireFit(needs: readonly HostNeed[], stageLimits: readonly StageLimit[]): void {
  const shortfalls = [...shortfallsOf(needs), ...limitShortfallsOf(stageLimits)];
  if (shortfalls.length > 0) throw new P4Error('PLAN_DOES_NOT_FIT', { shortfalls });
}

/** One sentence for each thing that is short on a machine. */
export function shortfallsOf(needs: readonly HostNeed[]): readonly string[] {
  const machines = new Map<string, HostNeed[]>();
  for (const need of needs) {
    const key = need.machineId === '' ? `host ${need.host}` : need.machineId;
    machines.set(key, [...(machines.get(key) ?? []), need]);
  }
  return [...machines.values()].flatMap((machine) => {
    const name = machine.map(({ host }) => host).join(' and ');
    const sum = (of: (need: HostNeed) => number): number => machine.reduce((total, need) => total + of(need), 0);
    const least = (of: (need: HostNeed) => number): number => Math.min(...machine.map(of));
    const memory = { wanted: sum((need) => need.memoryBytes), free: least((need) => need.memoryAvailableBytes) };
    const disk = { wanted: sum((need) => need.diskBytes), free: least((need) => need.diskFreeBytes) };
    return [...shortfall(`${name}: memory`, memory), ...shortfall(`${name}: disk`, disk)];
  });
}

export const limitShortfallsOf = (stageLimits: readonly StageLimit[]): readonly string[] =>
  stageLimits.flatMap(({ node, host, memoryBytes, limitBytes }) =>
    shortfall(`stage ${node} on ${host}: memory of its limit`, { wanted: memoryBytes, free: limitBytes }),
  );

interface Amounts {
  readonly wanted: number;
  readonly free: number;
}

function shortfall(name: string, { wanted, free }: Amounts): readonly string[] {
  // A host that takes nothing new is not judged, however full it is.
  if (wanted === 0 || wanted <= free) return [];
  return [`${name} short by ${bytesText(wanted - free)} (${bytesText(wanted)} needed, ${bytesText(free)} free)`];
}

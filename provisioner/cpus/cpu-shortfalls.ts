/** What of a plan its machines have too few CPUs for, in sentences. Pure. */
import { cpusOfRanges, rangesOfCpus } from '../../protocol/cpu-range.ts';
import { cpusOfGroups } from '../../protocol/cpu-topology.ts';
import type { CpuRange } from '../../protocol/inventory.ts';
import { cpusText } from '../../protocol/inventory.ts';
import { overloadsOf, type CpuClaim, type Overload } from './cpu-fit.ts';
import { flatGroup } from './free-cores.ts';
import type { Machine } from './machine.ts';
import { threadSum } from './written-cpus.ts';

/** A stage that runs, or is to run. */
export interface ClaimingStage {
  readonly ring: string;
  readonly node: number;
  readonly threads: number;
  /** `null`: all of the machine's. */
  readonly cpus: readonly CpuRange[] | null;
}

/** One sentence for each thing; a machine that starts nothing new is not judged. */
export function cpuShortfalls(
  machine: Machine,
  { fresh, others }: { readonly fresh: readonly ClaimingStage[]; readonly others: readonly ClaimingStage[] },
): readonly string[] {
  if (fresh.length === 0) return [];
  const cpus = cpusOfGroups(machine.groups ?? [flatGroup(machine.cpuCount)]);
  const all = new Set(cpus);
  // The numbers of CPUs that nobody told of mean nothing.
  const setOf = (set: readonly CpuRange[] | null): ReadonlySet<number> =>
    set === null || machine.groups === null ? all : new Set(cpusOfRanges(set));
  const claims = [...fresh, ...others].map(({ ring, node, threads, cpus: set }): CpuClaim => ({
    ...{ name: `stage ${node} of ${ring}`, threads },
    cpus: setOf(set),
  }));
  const strange = claims.filter((claim) => !cpus.some((cpu) => claim.cpus.has(cpu)));
  const judged = claims.filter((claim) => !strange.includes(claim));
  const overloads = overloadsOf(cpus, judged);
  const sentences = [
    ...strange.map(
      (claim) => `${claim.name} is to keep to CPUs ${listed(claim.cpus)}, and p4 has ${listed(cpus)} there`,
    ),
    ...overloads.map((overload) => overloadText(overload, cpus.length)),
    ...(overloads.length === 0 ? quotaShortfalls(machine, judged) : []),
  ];
  const name = machine.hosts.join(' and ');
  return sentences.map((sentence) => `${name}: ${sentence}`);
}

const listed = (cpus: Iterable<number>): string => cpusText(rangesOfCpus([...cpus]));

function overloadText({ claims, cpus }: Overload, cpuCount: number): string {
  const which = cpus.length === cpuCount ? '' : ` (${listed(cpus)})`;
  return `${sumText(claims)} for ${cpus.length} CPU${cpus.length === 1 ? '' : 's'}${which}`;
}

/** A control group that stops the machine's threads in turn has the effect of too few CPUs. */
function quotaShortfalls({ quota }: Machine, claims: readonly CpuClaim[]): readonly string[] {
  if (quota === null || threadSum(claims) <= quota || claims.every(({ threads }) => threads === 1)) return [];
  return [`${sumText(claims)} for the time of ${quota} CPUs that its control group has`];
}

/** `5 threads (stage 0 of tales 1 + stage 1 of tales 4)` */
function sumText(claims: readonly CpuClaim[]): string {
  const terms = claims.map(({ name, threads }) => `${name} ${threads}`).join(' + ');
  return `${threadSum(claims)} threads (${terms})`;
}

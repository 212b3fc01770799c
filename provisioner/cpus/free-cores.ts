/** The physical cores of a machine, and which of them no stage keeps to. Pure. */
import { cpusOfRanges } from '../../protocol/cpu-range.ts';
import type { CpuGroup } from '../../protocol/cpu-topology.ts';
import type { CpuRange } from '../../protocol/inventory.ts';
import type { Machine } from './machine.ts';

/** A core with less than this part of the fastest one's speed would hold a stage's other threads back at every step. */
const slowRatio = 0.75;

export class FreeCores {
  readonly count: number;
  /** Of the fast kind, as far as nobody keeps to one of their CPUs. */
  readonly fast: readonly CpuGroup[];
  readonly all: readonly CpuGroup[];
  readonly hasKept: boolean;
  readonly isKnown: boolean;
  readonly #groups: readonly CpuGroup[];

  constructor({ groups, cpuCount }: Machine, sets: readonly (readonly CpuRange[] | null)[]) {
    this.isKnown = groups !== null;
    this.#groups = groups ?? [flatGroup(cpuCount)];
    const kept = new Set(sets.flatMap((set) => (set === null ? [] : cpusOfRanges(set))));
    this.count = coresIn(this.#groups);
    this.all = this.#groups
      .map((group) => ({ ...group, cores: group.cores.filter((core) => !core.some((cpu) => kept.has(cpu))) }))
      .filter(({ cores }) => cores.length > 0);
    this.hasKept = coresIn(this.all) < this.count;
    const best = Math.max(...this.#groups.map(({ capacity }) => capacity));
    this.fast = this.all.filter(({ capacity }) => capacity >= best * slowRatio);
  }

  /** Cores that have one of these CPUs. */
  among(cpus: readonly CpuRange[]): number {
    const set = new Set(cpusOfRanges(cpus));
    return this.#groups.flatMap(({ cores }) => cores).filter((core) => core.some((cpu) => set.has(cpu))).length;
  }
}

/** CPUs of which only the number is known. */
export const flatGroup = (cpuCount: number): CpuGroup => ({
  numaNode: 0,
  capacity: 1,
  cores: Array.from({ length: cpuCount }, (_none, cpu) => [cpu]),
});

export const coresIn = (groups: readonly CpuGroup[]): number =>
  groups.reduce((sum, { cores }) => sum + cores.length, 0);

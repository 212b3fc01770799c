/**
 * Whether the stages of a machine have a CPU for each of their threads. Pure.
 *
 * Threads of one stage wait for each other by spinning, which costs a hundredfold where one of them has to wait for a CPU. So
 * a stage with several threads needs as many CPUs that no other stage computes on. A stage with a single thread waits for
 * nobody: such stages may share CPUs with each other, as many as there are.
 *
 * Threads are matched to CPUs, those of stages with several first. Where one finds none, the stages that compete for the same
 * CPUs as it does are what is too much: by Hall's theorem they have more threads than they have CPUs together.
 */
import { present } from '../../protocol/assert.ts';

export interface CpuClaim {
  /** For the sum: `stage 1 of tales`. */
  readonly name: string;
  readonly threads: number;
  /** CPUs that it may run on. */
  readonly cpus: ReadonlySet<number>;
}

/** Stages that have more threads than CPUs, one with several threads among them. */
export interface Overload {
  readonly claims: readonly CpuClaim[];
  /** All the CPUs that these may run on, rising. */
  readonly cpus: readonly number[];
}

/** @param cpus what the machine gives to p4; claims for other CPUs count for nothing */
export function overloadsOf(cpus: readonly number[], claims: readonly CpuClaim[]): readonly Overload[] {
  const overloadOf = (members: readonly CpuClaim[]): Overload => ({
    claims: claims.filter((claim) => members.includes(claim)),
    cpus: cpus.filter((cpu) => members.some((member) => member.cpus.has(cpu))),
  });
  // One that is too much by itself says nothing about the others.
  const alone = claims.filter((claim) => claim.threads > 1 && claim.threads > overloadOf([claim]).cpus.length);
  const rest = claims.filter((claim) => !alone.includes(claim));
  const matching = new Matching(cpus, rest);
  const rivalries = matching.unmatched
    .map((claim) => matching.rivalsOf(claim))
    .filter((rivals) => rivals.some(({ threads }) => threads > 1));
  return [...alone.map((claim) => [claim]), ...joined(rivalries)].map(overloadOf);
}

/** Sets that have a member in common made one. */
function joined(sets: readonly (readonly CpuClaim[])[]): readonly (readonly CpuClaim[])[] {
  let all: readonly (readonly CpuClaim[])[] = [];
  for (const set of sets) {
    const meets = (other: readonly CpuClaim[]): boolean => other.some((claim) => set.includes(claim));
    all = [...all.filter((other) => !meets(other)), [...set, ...all.filter(meets).flat()]];
  }
  return all;
}

/** CPUs that the same claims may use are one kind: only their number matters. */
interface CpuKind {
  readonly claims: readonly CpuClaim[];
  size: number;
  /** How many of them each claim has. */
  readonly given: Map<CpuClaim, number>;
}

class Matching {
  /** Claims that have fewer CPUs than threads. */
  readonly unmatched: readonly CpuClaim[];
  readonly #kinds: readonly CpuKind[];

  constructor(cpus: readonly number[], claims: readonly CpuClaim[]) {
    this.#kinds = kindsOf(cpus, claims);
    const bySize = claims.toSorted((one, other) => Number(other.threads > 1) - Number(one.threads > 1));
    this.unmatched = bySize.filter((claim) => {
      let missing = claim.threads;
      while (missing > 0) {
        const moved = this.#augment(claim, missing);
        if (moved === 0) return true;
        missing -= moved;
      }
      return false;
    });
  }

  /** The claim, and those that hold what it could have: directly, or by way of what they could have instead. */
  rivalsOf(claim: CpuClaim): readonly CpuClaim[] {
    return [...this.#search(claim).reached.keys()];
  }

  /** Gives the claim some more CPUs, moving others where they have a choice. @returns how many */
  #augment(claim: CpuClaim, most: number): number {
    const { reached, free } = this.#search(claim);
    if (free === null) return 0;
    const steps: { readonly kind: CpuKind; readonly taker: CpuClaim; readonly from: CpuKind | null }[] = [];
    let kind = free.kind;
    let taker = free.taker;
    for (;;) {
      const from = present(reached.get(taker), 'whoever takes was reached').by;
      steps.push({ kind, taker, from: from?.kind ?? null });
      if (from === null) break;
      kind = from.kind;
      taker = from.taker;
    }
    const room = free.kind.size - givenIn(free.kind);
    const amount = steps.reduce(
      (least, step) => (step.from === null ? least : Math.min(least, step.from.given.get(step.taker) ?? 0)),
      Math.min(most, room),
    );
    for (const step of steps) {
      give(step.kind, step.taker, amount);
      if (step.from !== null) give(step.from, step.taker, -amount);
    }
    return amount;
  }

  /** Breadth first, from the claim by all kinds that it may use to those who hold them. */
  #search(claim: CpuClaim): Search {
    const reached: Search['reached'] = new Map([[claim, { by: null }]]);
    const seen = new Set<CpuKind>();
    const queue = [claim];
    for (let taker = queue.shift(); taker !== undefined; taker = queue.shift()) {
      for (const kind of this.#kinds) {
        if (seen.has(kind) || !kind.claims.includes(taker)) continue;
        seen.add(kind);
        if (givenIn(kind) < kind.size) return { reached, free: { kind, taker } };
        for (const [holder, count] of kind.given) {
          if (count === 0 || reached.has(holder)) continue;
          reached.set(holder, { by: { kind, taker } });
          queue.push(holder);
        }
      }
    }
    return { reached, free: null };
  }
}

interface Search {
  /** By whom, and over which kind, each claim was reached; `null` for the first. */
  readonly reached: Map<CpuClaim, { readonly by: { readonly kind: CpuKind; readonly taker: CpuClaim } | null }>;
  /** A kind with CPUs left, and who of the reached may use it. */
  readonly free: { readonly kind: CpuKind; readonly taker: CpuClaim } | null;
}

function kindsOf(cpus: readonly number[], claims: readonly CpuClaim[]): readonly CpuKind[] {
  const kinds = new Map<string, CpuKind>();
  for (const cpu of cpus) {
    const users = claims.filter((claim) => claim.cpus.has(cpu));
    const key = users.map((claim) => claims.indexOf(claim)).join(' ');
    const known = kinds.get(key);
    if (known === undefined) kinds.set(key, { claims: users, size: 1, given: new Map() });
    else known.size += 1;
  }
  return [...kinds.values()];
}

const givenIn = ({ given }: CpuKind): number => [...given.values()].reduce((sum, count) => sum + count, 0);
const give = ({ given }: CpuKind, claim: CpuClaim, amount: number): void =>
  void given.set(claim, (given.get(claim) ?? 0) + amount);

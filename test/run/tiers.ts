/** The tiers of tests: which file belongs to which, and how each is run. Order is the order of running. */
import { availableParallelism } from 'node:os';

export type TierName = 'structure' | 'unit' | 'simulation' | 'engine' | 'ring' | 'hosts';

export interface Tier {
  readonly name: TierName;
  /** What it proves, for the reader of the output. */
  readonly proves: string;
  /** Whether a test source (path relative to the checkout) belongs here; the first tier that says so has it. */
  readonly owns: (path: string) => boolean;
  /** Files that run at once. */
  readonly concurrency: number;
  /** A file that runs longer is ended and counts as failed. */
  readonly fileTimeoutMs: number;
  /** A tier that must have tests fails without any; one that need not says that it has none. */
  readonly mustHaveTests: boolean;
}

export const tiers: readonly Tier[] = [
  {
    name: 'structure',
    proves: "the house's rules",
    owns: (path) => path.startsWith('test/structure/'),
    concurrency: availableParallelism(),
    fileTimeoutMs: 120_000,
    mustHaveTests: true,
  },
  {
    name: 'simulation',
    proves: 'seeded runs of the pure parts under lost, doubled and late messages',
    owns: (path) => path.startsWith('test/simulation/') || path.endsWith('.simulation.test.ts'),
    concurrency: availableParallelism(),
    fileTimeoutMs: 120_000,
    mustHaveTests: false,
  },
  {
    name: 'engine',
    proves: 'slices and stages against the uncut model',
    owns: (path) => path.startsWith('test/') && path.endsWith('.engine.test.ts'),
    // Each computes with one thread, and none measures time.
    concurrency: availableParallelism(),
    fileTimeoutMs: 600_000,
    mustHaveTests: true,
  },
  {
    name: 'ring',
    proves: 'whole rings: real processes on loopback',
    owns: (path) => path.startsWith('test/') && path.endsWith('.ring.test.ts'),
    // Much of their time they wait for processes to start and end. What they measure is CPU time, not the clock's.
    concurrency: 2,
    fileTimeoutMs: 600_000,
    mustHaveTests: true,
  },
  {
    name: 'hosts',
    proves: 'real hosts: systemd, sshd and networks of their own',
    owns: (path) => path.startsWith('test/') && path.endsWith('.hosts.test.ts'),
    // Fleets share nothing, and most keep a whole core busy: more at once would only make each slower.
    concurrency: 2,
    // The first on a machine also makes the hosts' file system.
    fileTimeoutMs: 900_000,
    mustHaveTests: true,
  },
  {
    name: 'unit',
    proves: 'each file by itself',
    owns: () => true,
    concurrency: availableParallelism(),
    fileTimeoutMs: 240_000,
    mustHaveTests: true,
  },
];

/** Cheap and broad first: a fault is heard of before the rings start. */
export const tierOrder: readonly TierName[] = ['structure', 'unit', 'simulation', 'engine', 'ring', 'hosts'];

export const isTierName = (text: string): text is TierName => tiers.some((tier) => tier.name === text);

export function tierNamed(name: TierName): Tier {
  const found = tiers.find((tier) => tier.name === name);
  if (found === undefined) throw new Error(`no tier is called ${name}`);
  return found;
}

/** Sorts test sources into tiers; each belongs to exactly one. */
export function filesOf(name: TierName, sources: readonly string[]): readonly string[] {
  return sources.filter((path) => tiers.find((tier) => tier.owns(path))?.name === name);
}

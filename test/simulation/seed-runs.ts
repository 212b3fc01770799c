/** Worlds, one seed after another, and what each failing one broke. */
import { Violation } from './violation.ts';
import { World } from './world.ts';

export interface SeedRuns {
  readonly from: number;
  readonly count: number;
  /** Where each step of every world is written. */
  readonly trace?: (line: string) => void;
  /** Told of each seed before it runs. */
  readonly began?: () => void;
  /** Told of each failure as it is found; ends the run where it says so. */
  readonly failed?: (failure: SeedFailure) => 'go-on' | 'stop';
}

export interface SeedFailure {
  readonly seed: number;
  readonly found: string;
}

export function runSeeds({ from, count, trace, began, failed = () => 'stop' }: SeedRuns): readonly SeedFailure[] {
  const failures: SeedFailure[] = [];
  for (let seed = from; seed < from + count; seed++) {
    began?.();
    const failure = failureOf(seed, trace ?? null);
    if (failure === null) continue;
    failures.push(failure);
    if (failed(failure) === 'stop') break;
  }
  return failures;
}

/** How a failing seed is seen again, step by step. */
export const replayCommand = (seed: number): string => `npm run simulate -- --from ${seed} --seeds 1 --trace`;

function failureOf(seed: number, trace: ((line: string) => void) | null): SeedFailure | null {
  try {
    new World(seed, trace).live();
    return null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { seed, found: error instanceof Violation ? error.message : (error.stack ?? error.message) };
  }
}

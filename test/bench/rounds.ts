/** The rounds: every arm in turn, so that whatever else the machine does falls on all of them. */
import { present } from '../../protocol/assert.ts';
import type { CommandContext } from '../../provisioner/command.ts';
import type { BenchSizes } from './bench-options.ts';

/** One way to do the work that is compared. */
export interface RoundArm<Found> {
  readonly name: string;
  /** @param round from 1; those that are not counted are 0 and below */
  run(round: number): Promise<Found>;
}

export interface RoundsOrder<Found> {
  /** What is measured, for whoever waits. */
  readonly what: string;
  readonly rounds: number;
  readonly arms: readonly RoundArm<Found>[];
  /** Rounds that are not counted; 1 if absent. */
  readonly warmUps?: number;
}

/** Rounds of short answers that are not counted, of several arms that share a ring. */
export const decodeWarmUps = 3;

/** The same for arms that have a ring each, by what each of them draws before it counts. */
export const longWarmUps = ({ tokens, warmTokens }: Pick<BenchSizes, 'tokens' | 'warmTokens'>): number =>
  Math.max(decodeWarmUps, Math.ceil(warmTokens / tokens));

/**
 * Runs all arms once a round, after rounds that are not counted: weights come from the disk, and code is not compiled yet.
 * @returns what each arm found, in the order of the arms, each in the order of the rounds
 * @throws what an arm fails with; CANCELLED
 */
export async function runRounds<Found>(
  { what, rounds, arms, warmUps = 1 }: RoundsOrder<Found>,
  { terminal, signal }: CommandContext,
): Promise<readonly (readonly Found[])[]> {
  const found = arms.map((): Found[] => []);
  for (let round = 1 - warmUps; round <= rounds; round += 1) {
    for (const at of turnsOf(arms.length, round + warmUps - 1)) {
      signal.throwIfAborted();
      const arm = present(arms[at], 'an index is that of an arm');
      const when = round < 1 ? 'warming up' : `round ${round} of ${rounds}`;
      terminal.progress(`${what}, ${when}: ${arm.name}`, Math.max(0, round) / (rounds + 1));
      const one = await arm.run(round);
      if (round > 0) found[at]?.push(one);
    }
  }
  return found;
}

/**
 * In which order arms have their turns in a stretch: each is the first as often as any other, and comes after the one
 * before it as often as after the one behind it. Who comes after one that waited for the disk finds the processor cold.
 * @returns indexes, each once
 */
export function turnsOf(arms: number, stretch: number): readonly number[] {
  const first = Math.floor(stretch / 2) % arms;
  const turns = Array.from({ length: arms }, (_, turn) => (first + turn) % arms);
  return stretch % 2 === 0 ? turns : turns.reverse();
}

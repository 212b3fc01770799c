/** The rounds: every arm in turn, so that whatever else the machine does falls on all of them. */
import type { CommandContext } from '../../provisioner/command.ts';
import type { BenchOptions } from './bench-options.ts';
import { armNames, type Arm, type ArmName, type ArmRound, type Rounds, type RoundTrips } from './measurement.ts';
import { roundTrips } from './round-trip.ts';
import { quantile, spreadOf } from './statistics.ts';

export interface RunOrder extends Pick<BenchOptions, 'rounds' | 'tokens'> {
  readonly prompt: readonly number[];
  readonly arms: Readonly<Record<ArmName, Arm>>;
  readonly echoPort: number;
}

export interface RunRounds {
  readonly rounds: Rounds;
  readonly network: RoundTrips;
}

/** Round trips each round: at some 50 microseconds they take no time, and their 99th percentile is one of five. */
const tripsEachRound = 500;

/** @throws what an arm fails with; CANCELLED */
export async function runRounds(order: RunOrder, { terminal, signal }: CommandContext): Promise<RunRounds> {
  const { arms, rounds, echoPort } = order;
  const measured: Record<ArmName, ArmRound[]> = { uncut: [], 'one agent': [], 'two agents': [] };
  const trips: (readonly number[])[] = [];
  // Round 0 is not counted: weights come from the disk, and code is not compiled yet.
  for (let round = 0; round <= rounds; round += 1) {
    for (const name of armNames) {
      signal.throwIfAborted();
      terminal.progress(round === 0 ? `warming up: ${name}` : `round ${round} of ${rounds}: ${name}`, round / rounds);
      const found = await armRound(arms[name], order);
      if (round > 0) measured[name].push(found);
    }
    if (round > 0) trips.push(await roundTrips(echoPort, tripsEachRound));
  }
  terminal.endProgress();
  return {
    rounds: measured,
    network: {
      p50Ms: spreadOf(trips.map((times) => quantile(times, 0.5))),
      p99Ms: spreadOf(trips.map((times) => quantile(times, 0.99))),
    },
  };
}

async function armRound(arm: Arm, { prompt, tokens }: RunOrder): Promise<ArmRound> {
  const decode = await arm.decode({ prompt: prompt[0] ?? 0, tokens });
  return { decode, prefill: await arm.prefill(prompt) };
}

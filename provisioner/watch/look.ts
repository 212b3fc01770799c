/** One look at a ring: what each of its agents says at about one moment. */
import type { HostAnswer, KnownRings } from '../status-table.ts';
import { SampleValues } from './sample-values.ts';

export interface Look {
  /** When it was taken, in milliseconds since 1970. */
  readonly takenAt: number;
  /** One for each host of the plan, in ring order. */
  readonly answers: readonly HostAnswer[];
  readonly known: KnownRings;
  /** The values of the hosts that answered and count. */
  readonly values: ReadonlyMap<string, SampleValues>;
}

export function lookOf(takenAt: number, answers: readonly HostAnswer[], known: KnownRings): Look {
  const values = answers.flatMap(({ host, answer }) => {
    if (answer.kind === 'error' || answer.status.samples === null) return [];
    const { agent, samples } = answer.status;
    return [[host, new SampleValues(samples, agent?.pid ?? 0)] as const];
  });
  return { takenAt, answers, known, values: new Map(values) };
}

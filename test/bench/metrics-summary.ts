/** What it costs to be seen, from rounds to figures. Pure. */
import { tableLines } from '../../provisioner/text-table.ts';
import type { DecodeRun } from './arm.ts';
import type { PartReport } from './part.ts';
import { mean, pairedRatios, quantile, spreadOf, spreadText } from './statistics.ts';
import { atLeast, atMost, beside } from './verdict.ts';

export const metricsArms = ['off', 'on', 'scraped'] as const;
export type MetricsArm = (typeof metricsArms)[number];

/** The rounds of one start of all agents and stages. */
export type MetricsStart = Readonly<Record<MetricsArm, readonly DecodeRun[]>>;

const titles: Readonly<Record<MetricsArm, string>> = {
  off: 'metrics off',
  on: 'metrics on',
  scraped: 'metrics on, 10 scrapes a second',
};

/** @param scrapes that were answered, over all rounds */
export function metricsReport(starts: readonly MetricsStart[], scrapes: number): PartReport {
  const speeds = (arm: MetricsArm): readonly number[] =>
    starts.flatMap((start) => start[arm].map(({ intervalsMs }) => 1000 / mean(intervalsMs)));
  // Of a start and not of a round: of some hundred intervals a 99th percentile is one or two.
  const p99 = (arm: MetricsArm): readonly number[] =>
    starts.map((start) =>
      quantile(
        start[arm].flatMap(({ intervalsMs }) => intervalsMs),
        0.99,
      ),
    );
  const agentCpu = (arm: MetricsArm): readonly number[] =>
    starts.flatMap((start) => start[arm].map(({ cpuMs }) => cpuMs[0] ?? 0));
  const figures = metricsArms.map((arm) => ({
    arm,
    tokensPerSecond: spreadOf(speeds(arm)),
    p99Ms: spreadOf(p99(arm)),
    agentCpuMs: spreadOf(agentCpu(arm)),
  }));
  const ratio = (of: readonly number[], to: readonly number[]) => spreadOf(pairedRatios(of, to));
  return {
    figures: { scrapes, arms: figures },
    blocks: [
      [
        ...tableLines(
          [
            { title: 'one session, 2 stages, 1 agent', align: 'left' },
            { title: 'tokens/s', align: 'right' },
            { title: 'token to token, p99, ms', align: 'right' },
            { title: 'agent CPU, ms per token', align: 'right' },
          ],
          figures.map(({ arm, tokensPerSecond, p99Ms, agentCpuMs }) => [
            titles[arm],
            spreadText(tokensPerSecond, 1),
            spreadText(p99Ms, 1),
            spreadText(agentCpuMs, 2),
          ]),
        ),
        `${String(scrapes)} scrapes were answered.`,
      ],
    ],
    verdicts: [
      atLeast(0.99, { figure: 'decode, metrics on / off', found: ratio(speeds('on'), speeds('off')) }),
      atMost(1.05, {
        figure: 'token to token, 10 scrapes a second / none, p99',
        found: ratio(p99('scraped'), p99('on')),
      }),
      beside({ figure: 'decode, 10 scrapes a second / none', found: ratio(speeds('scraped'), speeds('on')) }),
    ],
  };
}

/** A running session before and while another one's long prompt arrives. Pure. */
import { tableLines } from '../../provisioner/text-table.ts';
import { intervalsOf } from './arm.ts';
import { pairedRatios, quantile, spreadOf, spreadText, type Spread } from './statistics.ts';
import { stageLoadCells, stageLoads, type StageLoad, type StageLoadFigures } from './steady-state.ts';
import { atMost, type Verdict } from './verdict.ts';

/** One round. */
export interface ArrivalRun {
  /** When each token of the running session came. */
  readonly timesMs: readonly number[];
  /** When the prompt was submitted, and when its first token came. */
  readonly submittedMs: number;
  readonly answeredMs: number;
  /** Meanwhile, in ring order. */
  readonly stages: readonly StageLoadFigures[];
}

/** Milliseconds from token to token. */
export interface Intervals {
  /** Those that had ended when the prompt came. */
  readonly undisturbed: readonly number[];
  /** Those that began before its first token, and had not ended when it came. */
  readonly disturbed: readonly number[];
}

export function splitIntervals({ timesMs, submittedMs, answeredMs }: ArrivalRun): Intervals {
  const intervals = intervalsOf(timesMs).map((ms, index) => ({ ms, fromMs: timesMs[index] ?? 0 }));
  return {
    undisturbed: intervals.filter(({ ms, fromMs }) => fromMs + ms <= submittedMs).map(({ ms }) => ms),
    disturbed: intervals
      .filter(({ ms, fromMs }) => fromMs + ms > submittedMs && fromMs < answeredMs)
      .map(({ ms }) => ms),
  };
}

export interface IntervalFigures {
  readonly p50Ms: Spread;
  readonly p99Ms: Spread;
  /** Of all rounds. */
  readonly count: number;
}

export interface ArrivalFigures {
  readonly promptTokens: number;
  readonly undisturbed: IntervalFigures;
  readonly disturbed: IntervalFigures;
  /** Of the 99th percentiles, within a round. */
  readonly p99Ratio: Spread;
  /** Until the first token of the prompt that arrived. */
  readonly firstTokenMs: Spread;
  /** While it arrived, in ring order. */
  readonly stages: readonly StageLoad[];
}

export function summarizeArrivals(runs: readonly ArrivalRun[], promptTokens: number): ArrivalFigures {
  const rounds = runs.map(splitIntervals);
  const p99 = (kind: keyof Intervals): readonly number[] => rounds.map((round) => quantile(round[kind], 0.99));
  const figures = (kind: keyof Intervals): IntervalFigures => ({
    p50Ms: spreadOf(rounds.map((round) => quantile(round[kind], 0.5))),
    p99Ms: spreadOf(p99(kind)),
    count: rounds.reduce((sum, round) => sum + round[kind].length, 0),
  });
  return {
    promptTokens,
    undisturbed: figures('undisturbed'),
    disturbed: figures('disturbed'),
    p99Ratio: spreadOf(pairedRatios(p99('disturbed'), p99('undisturbed'))),
    firstTokenMs: spreadOf(runs.map(({ submittedMs, answeredMs }) => answeredMs - submittedMs)),
    stages: stageLoads(runs.map(({ stages }) => stages)),
  };
}

export const arrivalVerdicts = ({ promptTokens, p99Ratio }: ArrivalFigures): readonly Verdict[] => [
  atMost(3, {
    figure: `token to token while a prompt of ${promptTokens} tokens arrives / undisturbed, p99`,
    found: p99Ratio,
  }),
];

export function arrivalLines(figures: ArrivalFigures): readonly string[] {
  const [rows, computes] = stageLoadCells(figures.stages);
  const row = (title: string, { p50Ms, p99Ms, count }: IntervalFigures): string[] => [
    title,
    spreadText(p50Ms, 1),
    spreadText(p99Ms, 1),
    String(count),
  ];
  return [
    ...tableLines(
      [
        { title: 'a running session, ms from token to token', align: 'left' },
        { title: 'p50', align: 'right' },
        { title: 'p99', align: 'right' },
        { title: 'tokens', align: 'right' },
      ],
      [row('undisturbed', figures.undisturbed), row(`while ${figures.promptTokens} tokens arrive`, figures.disturbed)],
    ),
    `The prompt's first token came after ${spreadText(figures.firstTokenMs, 0)} ms; until then the stages ran ${rows} rows per ` +
      `decode and computed ${computes} of the time.`,
  ];
}

/** A tiny model in more and more stages: what each one adds to a step. Pure. */
import { present } from '../../protocol/assert.ts';
import { tableLines } from '../../provisioner/text-table.ts';
import type { DecodeRun } from './arm.ts';
import { lineFit, mean, median, spreadOf, spreadText, type LineFit, type Spread } from './statistics.ts';
import { atLeast, atMost, type Verdict } from './verdict.ts';

export interface StagesMeasured {
  readonly stages: number;
  /** By round. */
  readonly runs: readonly DecodeRun[];
}

export interface StagesFigures {
  readonly counts: readonly { readonly stages: number; readonly stepMs: Spread; readonly computeMs: Spread }[];
  /** What a stage adds to a step, by a line through the steps of a round. */
  readonly addedMs: Spread;
  /** Through the medians of all rounds. */
  readonly fit: LineFit;
}

/** Least part of the variance that the line has to explain, to be called one. */
const linearTarget = 0.98;

export function summarizeStages(measured: readonly StagesMeasured[]): StagesFigures {
  const steps = measured.map(({ stages, runs }) => ({
    stages,
    stepsMs: runs.map(({ intervalsMs }) => mean(intervalsMs)),
    computeMs: spreadOf(runs.map(({ computeMs }) => computeMs.reduce((sum, ms) => sum + ms, 0))),
  }));
  const rounds = present(steps[0], 'some cut is measured').stepsMs.length;
  const slopes = Array.from({ length: rounds }, (_, round) => {
    return lineFit(steps.map(({ stages, stepsMs }) => [stages, stepsMs[round] ?? 0])).slope;
  });
  return {
    counts: steps.map(({ stages, stepsMs, computeMs }) => ({ stages, stepMs: spreadOf(stepsMs), computeMs })),
    addedMs: spreadOf(slopes),
    fit: lineFit(steps.map(({ stages, stepsMs }) => [stages, median(stepsMs)])),
  };
}

export const stagesVerdicts = ({ addedMs, fit }: StagesFigures): readonly Verdict[] => [
  atMost(0.25, { figure: 'added time per stage and step, tiny model', found: addedMs, unit: 'ms' }),
  atLeast(linearTarget, { figure: 'added time is linear in stages, r²', found: fit.rSquared }),
];

export const stagesLines = ({ counts, fit }: StagesFigures): readonly string[] => [
  ...tableLines(
    [
      { title: 'stages of a tiny model, 1 agent', align: 'right' },
      { title: 'ms per step', align: 'right' },
      { title: 'of these the stages compute', align: 'right' },
      { title: 'the line', align: 'right' },
    ],
    counts.map(({ stages, stepMs, computeMs }) => [
      String(stages),
      spreadText(stepMs, 2),
      spreadText(computeMs, 2),
      (fit.intercept + fit.slope * stages).toFixed(2),
    ]),
  ),
  `The line through the medians: ${fit.intercept.toFixed(2)} ms and ${fit.slope.toFixed(3)} ms for each stage, ` +
    `r² ${fit.rSquared.toFixed(3)}.`,
];

/** Several sessions side by side: what they draw while all of them run. Pure. */
import { assert, present } from '../../protocol/assert.ts';
import type { Column } from '../../provisioner/text-table.ts';
import { spreadOf, type Spread } from './statistics.ts';

/**
 * Tokens a second of all sessions together, from the first token of the one that begins last to the last token of the one
 * that ends first: how they come in and go out is not in it. Each session has its own rate in that time, and the rates are
 * added up, since tokens of sessions that share a frame come in bursts.
 *
 * @param timesMs of each session, when each of its tokens came; at least two of each have to lie in that time
 */
export function steadyRate(timesMs: readonly (readonly number[])[]): number {
  const { fromMs, toMs } = sharedTime(timesMs);
  const rates = timesMs.map((times) => {
    const inside = times.filter((ms) => ms >= fromMs && ms <= toMs);
    const [first, last] = [inside[0], inside.at(-1)];
    assert(first !== undefined && last !== undefined && last > first, 'each session draws while all run');
    return (1000 * (inside.length - 1)) / (last - first);
  });
  return rates.reduce((sum, rate) => sum + rate, 0);
}

/** When all of them run. */
export function sharedTime(timesMs: readonly (readonly number[])[]): {
  readonly fromMs: number;
  readonly toMs: number;
} {
  const firsts = timesMs.map((times) => present(times[0], 'a session has drawn'));
  const lasts = timesMs.map((times) => present(times.at(-1), 'a session has drawn'));
  return { fromMs: Math.max(...firsts), toMs: Math.min(...lasts) };
}

/** What the stage had done by a moment since its load. */
export interface StageMark {
  readonly decodes: number;
  /** Those that sessions asked for: dummy rows apart. */
  readonly rows: number;
  readonly computeMs: number;
}

export interface StageLoadFigures {
  readonly rowsPerDecode: number;
  /** The part of the time in which the stage computes, 0 to 1. */
  readonly computeShare: number;
}

export function stageFigures(from: StageMark, to: StageMark, elapsedMs: number): StageLoadFigures {
  assert(elapsedMs > 0 && to.decodes > from.decodes, 'the stage has computed in that time');
  return {
    rowsPerDecode: (to.rows - from.rows) / (to.decodes - from.decodes),
    computeShare: (to.computeMs - from.computeMs) / elapsedMs,
  };
}

/** Of a stage, over the rounds. */
export interface StageLoad {
  readonly rowsPerDecode: Spread;
  readonly computeShare: Spread;
}

/**
 * @param runs each with the stages in ring order
 * @returns in ring order
 */
export function stageLoads(runs: readonly (readonly StageLoadFigures[])[]): readonly StageLoad[] {
  return present(runs[0], 'there is a round').map((_, index) => {
    const own = runs.map((stages) => present(stages[index], 'stages stay the same'));
    return {
      rowsPerDecode: spreadOf(own.map(({ rowsPerDecode }) => rowsPerDecode)),
      computeShare: spreadOf(own.map(({ computeShare }) => computeShare)),
    };
  });
}

/** Of a table that has a row for each number of sessions. */
export const stageLoadColumns: readonly Column[] = [
  { title: 'rows per decode, by stage', align: 'right' },
  { title: 'computes, by stage', align: 'right' },
];

export const stageLoadCells = (stages: readonly StageLoad[]): readonly string[] => [
  stages.map(({ rowsPerDecode }) => rowsPerDecode.median.toFixed(2)).join(' '),
  stages.map(({ computeShare }) => `${(100 * computeShare.median).toFixed(0)} %`).join(' '),
];

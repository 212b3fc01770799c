/** What `decode: exact` costs against `decode: fast`: one session, and several together. */
import { present } from '../../protocol/assert.ts';
import { tableLines } from '../../provisioner/text-table.ts';
import { withRings, type Part, type PartReport } from './part.ts';
import type { TogetherRun } from './ring-arm.ts';
import { decodeWarmUps, runRounds } from './rounds.ts';
import { loneTokens } from './sessions-part.ts';
import { pairedRatios, spreadOf, spreadText, type Spread } from './statistics.ts';
import { stageLoadCells, stageLoadColumns, stageLoads, type StageLoad } from './steady-state.ts';
import { beside } from './verdict.ts';

/** Tokens of a session beyond what it draws. */
const spareTokens = 64;
/** How many sessions draw together, beside one alone. */
const together = 4;

export const modesPart: Part = async (place) => {
  const { rounds, tokens } = place.sizes;
  const model = await place.models.model('bench');
  const ring = { model, contextTokens: tokens + spareTokens, stages: 2, agents: 1, sessions: together };
  const orders = (['fast', 'exact'] as const).map((decode) => ({ ...ring, name: `decode ${decode}`, decode }));
  return withRings(place, orders, async (rings) => {
    const cases = [1, together].flatMap((sessions) => rings.map((of) => ({ of, sessions })));
    const arms = cases.map(({ of, sessions }, index) => ({
      name: `${index % 2 === 0 ? 'fast' : 'exact'}, ${sessions} at once`,
      run: () => of.together({ prompts: loneTokens(sessions), tokens }),
    }));
    return modesReport(await runRounds({ what: 'decode modes', rounds, arms, warmUps: decodeWarmUps }, place.context));
  });
};

interface ModeFigures {
  readonly tokensPerSecond: Spread;
  readonly stages: readonly StageLoad[];
}

/** @param runs of one session in fast and exact, then of several in fast and exact, by round */
export function modesReport(runs: readonly (readonly TogetherRun[])[]): PartReport {
  const figures = [1, together].map((sessions, index) => {
    const fast = present(runs[2 * index], 'each case was run in fast');
    const exact = present(runs[2 * index + 1], 'and in exact');
    return {
      ...{ sessions, fast: modeFigures(fast), exact: modeFigures(exact) },
      ratio: spreadOf(pairedRatios(speedsOf(exact), speedsOf(fast))),
    };
  });
  const sessionsText = (sessions: number): string => (sessions === 1 ? '1 session' : `${sessions} sessions`);
  return {
    figures: { modes: figures },
    blocks: [
      tableLines(
        [{ title: 'decode mode', align: 'left' }, { title: 'total tokens/s', align: 'right' }, ...stageLoadColumns],
        figures.flatMap(({ sessions, fast, exact }) => [
          [`fast, ${sessionsText(sessions)}`, ...modeCells(fast)],
          [`exact, ${sessionsText(sessions)}`, ...modeCells(exact)],
        ]),
      ),
    ],
    verdicts: figures.map(({ sessions, ratio: found }) =>
      beside({ figure: `decode: exact / fast, ${sessionsText(sessions)}`, found }),
    ),
  };
}

const speedsOf = (runs: readonly TogetherRun[]): readonly number[] =>
  runs.map(({ tokensPerSecond }) => tokensPerSecond);

const modeFigures = (runs: readonly TogetherRun[]): ModeFigures => ({
  tokensPerSecond: spreadOf(speedsOf(runs)),
  stages: stageLoads(runs.map(({ stages }) => stages)),
});

const modeCells = ({ tokensPerSecond, stages }: ModeFigures): readonly string[] => [
  spreadText(tokensPerSecond, 1),
  ...stageLoadCells(stages),
];

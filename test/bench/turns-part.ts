/** The second turn of a long session, and a new session whose prompt begins as that one did. */
import { present } from '../../protocol/assert.ts';
import { tableLines } from '../../provisioner/text-table.ts';
import { randomTokens } from '../exactness/script.ts';
import { withRing, type Part, type PartReport } from './part.ts';
import { firstTokenMs, type RingArm } from './ring-arm.ts';
import type { SettledRun } from './ring-session.ts';
import { runRounds } from './rounds.ts';
import { pairedRatios, spreadOf, spreadText, type Spread } from './statistics.ts';
import { atMost, beside } from './verdict.ts';

/** New tokens of the second turn, and of the new session. */
const newTokens = 16;
/** Tokens that each turn draws. */
const drawnTokens = 4;
const spareTokens = 64;

/** Time to the first token, and rows whose KV was there already. */
export interface TurnRun {
  readonly ms: number;
  readonly reusedRows: number;
}

/** One round. */
export interface TurnRuns {
  readonly first: TurnRun;
  readonly second: TurnRun;
  /** In a session of its own. */
  readonly sameBeginning: TurnRun;
}

export const turnsPart: Part = async (place) => {
  const { rounds, turnTokens } = place.sizes;
  const model = await place.models.model('bench');
  const contextTokens = turnTokens + 2 * (newTokens + drawnTokens) + spareTokens;
  return withRing(place, { name: 'turns', model, contextTokens, stages: 2, agents: 1, sessions: 2 }, async (ring) => {
    const tokensOf = (seed: number, count: number) => randomTokens(seed, count, model.vocabularySize);
    const run = (round: number): Promise<TurnRuns> =>
      turns(ring, {
        beginning: tokensOf(700 + round, turnTokens),
        next: tokensOf(800 + round, newTokens),
        other: tokensOf(900 + round, newTokens),
      });
    const arms = [{ name: 'two turns and a new session', run }];
    const found = await runRounds({ what: `a session of ${turnTokens} tokens`, rounds, arms }, place.context);
    return turnsReport(present(found[0], 'there is one arm'), turnTokens);
  });
};

interface TurnPrompts {
  readonly beginning: readonly number[];
  readonly next: readonly number[];
  readonly other: readonly number[];
}

async function turns(ring: RingArm, { beginning, next, other }: TurnPrompts): Promise<TurnRuns> {
  const long = await ring.open();
  const first = await long.ask({ prompt: beginning, tokens: drawnTokens });
  const second = await long.ask({ prompt: next, tokens: drawnTokens });
  await long.close();
  const another = await ring.open();
  const sameBeginning = await another.ask({ prompt: [...beginning, ...other], tokens: drawnTokens });
  await another.close();
  return { first: turnRun(first), second: turnRun(second), sameBeginning: turnRun(sameBeginning) };
}

const turnRun = (run: SettledRun): TurnRun => ({
  ms: firstTokenMs(run),
  reusedRows: present(run.stages[0], 'the head gave a receipt').reused,
});

export function turnsReport(runs: readonly TurnRuns[], turnTokens: number): PartReport {
  const times = (kind: keyof TurnRuns): readonly number[] => runs.map((run) => run[kind].ms);
  const reused = (kind: keyof TurnRuns): Spread => spreadOf(runs.map((run) => run[kind].reusedRows));
  const ratio = (kind: keyof TurnRuns): Spread => spreadOf(pairedRatios(times(kind), times('first')));
  const titles = {
    first: `first turn, ${turnTokens} tokens`,
    second: `second turn, ${newTokens} more`,
    sameBeginning: `new session, the same ${turnTokens} and ${newTokens} others`,
  };
  const kinds = ['first', 'second', 'sameBeginning'] as const;
  const figures = kinds.map((kind) => ({ kind, ms: spreadOf(times(kind)), reusedRows: reused(kind) }));
  const reusedBeginning = reused('sameBeginning').median;
  const what = reusedBeginning > 0 ? `${reusedBeginning} rows reused` : 'no row reused';
  return {
    figures: { turnTokens, turns: figures },
    blocks: [
      tableLines(
        [
          { title: 'time to the first token', align: 'left' },
          { title: 'ms', align: 'right' },
          { title: 'rows reused', align: 'right' },
        ],
        figures.map(({ kind, ms, reusedRows }) => [titles[kind], spreadText(ms, 1), spreadText(reusedRows, 0)]),
      ),
    ],
    verdicts: [
      atMost(0.1, {
        figure: `second turn of a session of ${turnTokens} tokens / first turn, time to first token`,
        found: ratio('second'),
      }),
      beside({ figure: `new session with the same beginning / first turn (${what})`, found: ratio('sameBeginning') }),
    ],
  };
}

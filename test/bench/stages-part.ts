/** A tiny model in 1, 2, 4, ... stages under one agent: what each stage adds to a step. */
import { present } from '../../protocol/assert.ts';
import { withRings, type Part } from './part.ts';
import { longWarmUps, runRounds } from './rounds.ts';
import { stagesLines, stagesVerdicts, summarizeStages } from './stages-summary.ts';

/** Tokens beyond what is drawn. */
const spareTokens = 64;

export const stagesPart: Part = async (place) => {
  const { rounds, tokens, stages: counts } = place.sizes;
  const model = await place.models.model('tiny');
  const orders = counts.map((stages) => ({
    ...{ name: `tiny ${stages} stages`, model, contextTokens: tokens + spareTokens },
    ...{ stages, agents: 1, sessions: 1 },
  }));
  return withRings(place, orders, async (rings) => {
    const arms = rings.map((ring, index) => ({
      name: `${String(counts[index])} stages`,
      run: () => ring.decode({ prompt: [1], tokens }),
    }));
    const warmUps = longWarmUps(place.sizes);
    const found = await runRounds({ what: 'a tiny model', rounds, arms, warmUps }, place.context);
    const figures = summarizeStages(
      counts.map((stages, index) => ({ stages, runs: present(found[index], 'each arm has its rounds') })),
    );
    return { figures, blocks: [stagesLines(figures)], verdicts: stagesVerdicts(figures) };
  });
};

/** Several sessions of one ring together, in two stages of one thread under one agent. */
import { present } from '../../protocol/assert.ts';
import { withRing, type Part } from './part.ts';
import { decodeWarmUps, runRounds } from './rounds.ts';
import { sessionsLines, sessionsVerdicts, summarizeSessions } from './sessions-summary.ts';

/** Tokens of a session beyond what it draws. */
const spareTokens = 64;

export const sessionsPart: Part = async (place) => {
  const { rounds, tokens, sessions: counts } = place.sizes;
  const model = await place.models.model('bench');
  const order = {
    ...{ name: 'sessions', model, contextTokens: tokens + spareTokens },
    ...{ stages: 2, agents: 1, sessions: Math.max(...counts) },
  };
  return withRing(place, order, async (ring) => {
    const arms = counts.map((count) => ({
      name: `${count} of them`,
      run: () => ring.together({ prompts: loneTokens(count), tokens }),
    }));
    const found = await runRounds({ what: 'sessions together', rounds, arms, warmUps: decodeWarmUps }, place.context);
    const figures = summarizeSessions(
      counts.map((sessions, index) => ({ sessions, runs: present(found[index], 'each arm has its rounds') })),
    );
    return { figures: { sessions: figures }, blocks: [sessionsLines(figures)], verdicts: sessionsVerdicts(figures) };
  });
};

/** Prompts of one token, another for each session: all begin with the same step. */
export const loneTokens = (sessions: number): readonly (readonly number[])[] =>
  Array.from({ length: sessions }, (_, index) => [1 + index]);

/** A long prompt: the uncut model in one process with one thread, and two stages of one thread each. */
import { assert, present } from '../../protocol/assert.ts';
import { tableLines } from '../../provisioner/text-table.ts';
import { randomTokens } from '../exactness/script.ts';
import type { PrefillRun } from './arm.ts';
import { withRing, withUncut, type Part, type PartReport } from './part.ts';
import { runRounds } from './rounds.ts';
import { pairedRatios, spreadOf, spreadText } from './statistics.ts';
import { atLeast, beside } from './verdict.ts';

/** Tokens beyond the prompt. */
const spareTokens = 64;
const armNames = ['uncut, one process', '2 stages, 1 agent', '2 stages, 2 agents'] as const;

export const prefillPart: Part = async (place) => {
  const { rounds, promptTokens } = place.sizes;
  const model = await place.models.model('bench');
  const contextTokens = promptTokens + spareTokens;
  const ring = { model, contextTokens, stages: 2, sessions: 1 };
  // Another prompt each round: nothing of it is in a cache.
  const promptOf = (round: number) => randomTokens(500 + round, promptTokens, model.vocabularySize);
  return withRing(place, { ...ring, name: 'prefill 1 agent', agents: 1 }, (one) =>
    withRing(place, { ...ring, name: 'prefill 2 agents', agents: 2 }, (two) =>
      withUncut(place, { model, contextTokens }, async (uncut) => {
        const arms = [uncut, one, two].map((arm, index) => ({
          name: present(armNames[index], 'each arm has a name'),
          run: (round: number) => arm.prefill(promptOf(round)),
        }));
        const found = await runRounds({ what: `a prompt of ${promptTokens} tokens`, rounds, arms }, place.context);
        return prefillReport(found, promptTokens);
      }),
    ),
  );
};

/** @param found by arm (uncut, one agent, two agents) and round */
export function prefillReport(found: readonly (readonly PrefillRun[])[], promptTokens: number): PartReport {
  requireSameToken(found);
  const speeds = found.map((runs) => runs.map(({ ms }) => (1000 * promptTokens) / ms));
  const [uncut, one, two] = speeds.map((of) => present(of, 'each arm has its rounds'));
  assert(uncut !== undefined && one !== undefined && two !== undefined, 'there are three arms');
  const ratio = (of: readonly number[], to: readonly number[]) => spreadOf(pairedRatios(of, to));
  const figures = armNames.map((name, index) => ({
    name,
    tokensPerSecond: spreadOf(present(speeds[index], 'each arm has its rounds')),
  }));
  return {
    figures: { promptTokens, arms: figures },
    blocks: [
      tableLines(
        [
          { title: `prompt of ${promptTokens} tokens`, align: 'left' },
          { title: 'tokens/s', align: 'right' },
        ],
        figures.map(({ name, tokensPerSecond }) => [name, spreadText(tokensPerSecond, 0)]),
      ),
    ],
    verdicts: [
      atLeast(1.8, { figure: `prefill of ${promptTokens} tokens, 2 stages / uncut`, found: ratio(one, uncut) }),
      beside({ figure: `prefill of ${promptTokens} tokens, two agents / one agent`, found: ratio(two, one) }),
    ],
  };
}

/** Every arm draws the same token in a round (X1): what is compared is the same work. */
function requireSameToken(found: readonly (readonly PrefillRun[])[]): void {
  const [first, ...others] = found;
  for (const other of others) {
    const isSame = other.every(({ token }, round) => token === first?.[round]?.token);
    assert(isSame, 'X1: every arm draws the same token after the same prompt');
  }
}

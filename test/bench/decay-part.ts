/**
 * `npm run bench -- --decay`: does a ring grow slower as its journals grow? Two stages under two agents answer requests of
 * equal load in four runs, one after the other, and then long ones, whose quarters are compared.
 *
 * Nothing here can take turns with itself of an hour ago. So each answer takes turns with the uncut model, which has no
 * journal and draws the same tokens: what else the machine does, and what a longer context costs the model, falls on both,
 * and the ring's speed as a part of the uncut model's is what is compared.
 */
import { assert, present } from '../../protocol/assert.ts';
import type { DecodeOrder, DecodeRun } from './arm.ts';
import { decayReport, type DecayPair, type DecayRun } from './decay-summary.ts';
import { withRing, withUncut, type BenchPlace, type Part } from './part.ts';
import type { RingArm } from './ring-arm.ts';
import { decodeWarmUps, turnsOf } from './rounds.ts';
import type { UncutArm } from './uncut-arm.ts';

/** Tokens beyond the prompt and what is drawn. */
const spareTokens = 64;
const runs = 4;

export const decayPart: Part = async (place) => {
  const { longTokens } = place.sizes.decay;
  const model = await place.models.model('bench');
  const contextTokens = longTokens + spareTokens;
  const order = { name: 'decay', model, contextTokens, stages: 2, agents: 2, sessions: 1 };
  return withRing(place, order, (ring) =>
    withUncut(place, { model, contextTokens }, async (uncut) => decayReport(await measured(place, { ring, uncut }))),
  );
};

interface DecayArms {
  readonly ring: RingArm;
  readonly uncut: UncutArm;
}

async function measured(
  { sizes: { decay, tokens }, context }: BenchPlace,
  arms: DecayArms,
): Promise<{ readonly runs: readonly DecayRun[]; readonly long: DecayRun }> {
  const order = { prompt: [1], tokens };
  const run = async (name: string, of: { readonly count: number; readonly order: DecodeOrder }): Promise<DecayRun> => {
    const before = await arms.ring.journal();
    const pairs: DecayPair[] = [];
    for (let request = 0; request < of.count; request += 1) {
      context.signal.throwIfAborted();
      context.terminal.progress(`${name}, ${String(request + 1)} of ${String(of.count)}`, request / of.count);
      pairs.push(await pair(arms, { order: of.order, turn: request }));
    }
    const after = await arms.ring.journal();
    assert(after.records > before.records, 'the journals grow throughout');
    return { pairs, before, after };
  };
  await run('warming up', { count: decodeWarmUps, order });
  const found: DecayRun[] = [];
  for (let index = 1; index <= runs; index += 1) {
    found.push(await run(`run ${String(index)} of ${String(runs)}`, { count: decay.requests, order }));
  }
  const long = await run('a long one', { count: decay.longRuns, order: { prompt: [1], tokens: decay.longTokens } });
  return { runs: found, long };
}

/** Both draw the same, one after the other, each as often the first. */
async function pair(
  { ring, uncut }: DecayArms,
  { order, turn }: { readonly order: DecodeOrder; readonly turn: number },
): Promise<DecayPair> {
  const arms = [ring, uncut];
  const found: DecodeRun[] = [];
  for (const at of turnsOf(arms.length, turn))
    found[at] = await present(arms[at], 'an index is that of an arm').decode(order);
  const [ofRing, ofUncut] = [present(found[0], 'the ring ran'), present(found[1], 'the uncut model ran')];
  assert(ofRing.tokens.join() === ofUncut.tokens.join(), 'X1: both draw the same tokens');
  return { ringMs: ofRing.intervalsMs, uncutMs: ofUncut.intervalsMs };
}

/** Several sessions of one ring, one after another and beside each other: texts, turns, receipts, and what is left of them. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';

import { randomBits } from '../../model/random-weights.ts';
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { agreedRows, type Ask, type LoadedRing } from '../fixture/loaded-ring.ts';
import { randomSession } from '../fixture/random-session.ts';

const sessions = 4;
const randomSessions = 150;
/** Texts and settlements of the latest requests are kept, and a heap grows before it is collected. */
const mostGrowthBytes = 96 * 2 ** 20;

let agents: LocalAgents;
let ring: LoadedRing;

before(async () => {
  agents = await LocalAgents.start(2);
  const stages = [
    ['local', '0-2'],
    ['local-2', '3-5'],
    ['local', '6-7'],
  ] as const;
  ring = await agents.load({ ring: 'many', stages, sessions, decode: 'exact' });
});
after(() => agents.stop());

test('as many sessions as the plan has answer side by side what each answers alone; one more waits, or is told that the ring is busy', async () => {
  const prompts = ['Once upon a time', 'The fox', '<|user|>\nTell me a story.<|end|>\n<|assistant|>\n', 'One day, Leo'];
  const asks = prompts.map((prompt, seed): Ask => {
    return { prompt, maxTokens: 48, sampling: { temperature: 0.8, seed: 11 + seed, repeatPenalty: 1.1 } };
  });
  const alone: string[] = [];
  for (const ask of asks) alone.push((await ring.askAlone(ask)).text);
  assert.equal(new Set(alone).size, sessions, 'four different texts');

  const held = await Promise.all(asks.map(() => ring.open()));
  await assert.rejects(ring.open(), (error) => error instanceof P4Error && error.code === 'RING_BUSY');
  const ahead: number[] = [];
  const fifth = ring.calls.openSession(ring.signal, { onWaiting: (others) => ahead.push(others) });
  await eventually(() => ahead.length > 0, { what: 'the fifth hears that it waits' });
  const leaver = new AbortController();
  const sixth = ring.calls.openSession(leaver.signal, { onWaiting: (others) => ahead.push(others) });
  await eventually(() => ahead.length > 1, { what: 'so does the sixth' });
  leaver.abort(new P4Error('CANCELLED', { by: 'the test' }));
  await assert.rejects(sixth);
  assert.deepEqual(ahead, [0, 1]);
  const together = await Promise.all(
    held.map(({ session }, index) => ring.ask(session, present(asks[index], 'one each'))),
  );
  assert.deepEqual(
    together.map(({ text }) => text),
    alone,
  );
  await held[0]?.letGo();
  await (await fifth).letGo();
  await Promise.all(held.slice(1).map((each) => each.letGo()));
  await ring.untilEmpty();
  assert.equal((await agents.home.run(['infer', ring.plan.path, 'Once', '--max-tokens', '2'])).exit, 0);
});

test('a second turn goes on as one uncut conversation would, and only its new rows run', async () => {
  const sampling = { temperature: 0.8, seed: 5, repeatPenalty: 1.2 };
  const turns = [[0, 79, 110, 99, 101], [300], [17, 400, 23, 9]];
  const held = await ring.open();
  let told: number[] = [];
  for (const prompt of turns) {
    const reused = Math.max(0, told.length - 1);
    told = [...told, ...prompt];
    const turn = await ring.ask(held.session, { prompt, maxTokens: 20, sampling, ignoreEnd: true });
    const uncut = await ring.askAlone({ prompt: told, maxTokens: 20, sampling, ignoreEnd: true });
    assert.deepEqual(turn.tokens, uncut.tokens);
    assert.equal(turn.end.promptTokens, told.length);
    // The row of a turn's last token runs with the next turn: nothing was drawn behind it.
    assert.deepEqual(agreedRows(turn.settlement), { prefilled: told.length - reused, decoded: 19, reused });
    assert.deepEqual(agreedRows(uncut.settlement), { prefilled: told.length, decoded: 19, reused: 0 });
    told = [...told, ...turn.tokens];
  }
  await held.letGo();
  await ring.untilEmpty();
});

test('a request that its client cancelled leaves a session that goes on where it was', async () => {
  const held = await ring.open();
  const request = await ring.submit(held.session, { prompt: [0, 300, 301], maxTokens: 500, ignoreEnd: true });
  for await (const event of ring.calls.gather(held.session, request, ring.signal)) {
    if (event.event === 'token' && event.token.index === 7) break;
  }
  await ring.cancel(held.session, request);
  const cancelled = await ring.hear(held.session, request);
  assert.equal(cancelled.end.reason, 'cancelled');
  const told = [0, 300, 301, ...cancelled.tokens, 17];
  const next = await ring.ask(held.session, { prompt: [17], maxTokens: 12 });
  assert.deepEqual(next.tokens, (await ring.askAlone({ prompt: told, maxTokens: 12 })).tokens);
  const { prefilled, reused } = agreedRows(next.settlement);
  assert.equal(prefilled + reused, told.length);
  await held.letGo();
  await ring.untilEmpty();
});

test(`after ${String(randomSessions)} random sessions every receipt agrees, every KV cache is empty, and no agent has grown`, async (context) => {
  const residents = agents.hosts.map((host) => agents.agent(host));
  const before = residents.map(({ residentBytes }) => residentBytes);
  const seed = randomInt(2 ** 32);
  context.diagnostic(`seed ${String(seed)}`);
  const left = Array.from({ length: randomSessions }, (_none, index) => index);
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      await randomSession({ ring, random: randomBits(seed, next), mostTokens: 10 });
    }
  };
  await Promise.all(Array.from({ length: sessions }, work));
  await ring.untilEmpty();
  for (const [index, agent] of residents.entries()) {
    const grown = agent.residentBytes - (before[index] ?? 0);
    context.diagnostic(`agent ${agent.config.host} grew by ${String(Math.round(grown / 2 ** 20))} MiB`);
    assert.ok(grown < mostGrowthBytes, `an agent grew by ${String(grown)} bytes`);
  }
  assert.equal((await ring.headStatus()).requestsRunning, 0);
});

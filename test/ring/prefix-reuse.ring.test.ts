/**
 * Sessions that begin like earlier ones run only what is new: with the words of one that ran all of it, in the settlement of
 * every stage, and with nothing left of a session but what is kept, whatever way it ended.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import type { HeldSession } from '../../provisioner/ring-calls.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { agreedRows, type Answer, type Ask, type LoadedRing } from '../fixture/loaded-ring.ts';

const keptPrefixes = 3;
const beginning = Array.from({ length: 90 }, (_none, row) => 6 + ((row * 37) % 1000));

let agents: LocalAgents;
let ring: LoadedRing;

before(async () => {
  agents = await LocalAgents.start(2);
  const stages = [
    ['local', '0-2'],
    ['local-2', '3-5'],
    ['local', '6-7'],
  ] as const;
  ring = await agents.load({ ring: 'reuse', stages, sessions: 3, reuse: keptPrefixes, decode: 'exact', context: 256 });
});
after(() => agents.stop());

const openFor = (cacheKey: string, signal = ring.signal): Promise<HeldSession> =>
  ring.calls.openSession(signal, { cacheKey });

/** In a session of its own. */
async function askAs(cacheKey: string, ask: Ask): Promise<Answer> {
  const held = await openFor(cacheKey);
  try {
    return await ring.ask(held.session, ask);
  } finally {
    await held.letGo();
    await untilKept();
  }
}

/** No session is open, and every stage has the rows that the head knows to be kept, and no others. */
async function untilKept(): Promise<number> {
  await ring.untilEmpty();
  let kept = -1;
  const isKept = async (): Promise<boolean> => {
    const [{ rowsKept }, nodes] = [await ring.headStatus(), await ring.nodes()];
    kept = rowsKept;
    return nodes.every(({ kvCellsKept }) => kvCellsKept === rowsKept);
  };
  await eventually(isKept, { what: 'every stage keeps what the head says' });
  return kept;
}

const samplings: readonly Ask['sampling'][] = [{}, { temperature: 0.8, seed: 5, repeatPenalty: 1.2 }];

test('a prompt that begins like an earlier one has the text of one that ran all of it, and runs what is new', async () => {
  for (const [index, sampling = {}] of samplings.entries()) {
    const key = `alike-${index}`;
    const asks = [300, 301, 302].map((token, turn): Ask => {
      return { prompt: [...beginning, token, 17 + turn], maxTokens: 24, sampling, ignoreEnd: true };
    });
    const whole: Answer[] = [];
    for (const ask of asks) whole.push(await ring.askAlone(ask));
    for (const { settlement } of whole) assert.equal(agreedRows(settlement).reused, 0, 'a session without a key');
    for (const [turn, ask] of asks.entries()) {
      const neighbour = ring.askAlone({ prompt: 'Once upon a time', maxTokens: 60, sampling: { seed: turn } });
      const held = await openFor(key);
      const answer = await ring.ask(held.session, ask);
      await Promise.all([neighbour, held.letGo()]);
      await untilKept();
      assert.deepEqual(answer.tokens, whole[turn]?.tokens);
      const reused = turn === 0 ? 0 : beginning.length;
      assert.deepEqual(agreedRows(answer.settlement), { prefilled: 92 - reused, decoded: 23, reused });
      assert.equal(answer.end.promptTokens, 92);
    }
  }
});

test('a talk that goes on in another session goes on from its last row', async () => {
  const sampling = { temperature: 0.8, seed: 9 };
  const first = await askAs('talk', { prompt: beginning, maxTokens: 20, sampling, ignoreEnd: true });
  const prompt = [...beginning, ...first.tokens, 400, 23];
  const next = await askAs('talk', { prompt, maxTokens: 20, sampling, ignoreEnd: true });
  assert.deepEqual(agreedRows(next.settlement), { prefilled: 3, decoded: 19, reused: beginning.length + 19 });
  const whole = await ring.askAlone({ prompt, maxTokens: 20, sampling, ignoreEnd: true });
  assert.deepEqual(next.tokens, whole.tokens);
});

test('keys keep sessions apart, and a key that is too long is refused', async () => {
  const ask = { prompt: beginning, maxTokens: 4, ignoreEnd: true };
  await askAs('mine', ask);
  assert.equal(agreedRows((await askAs('yours', ask)).settlement).reused, 0);
  assert.equal(agreedRows((await ring.askAlone(ask)).settlement).reused, 0);
  assert.equal(agreedRows((await askAs('mine', ask)).settlement).reused, beginning.length - 1);
  await assert.rejects(openFor('k'.repeat(limits.cacheKeyBytes + 1)), { code: 'INVALID_ARGUMENT' });
});

test('open sessions have all the cells that they were promised, whatever is kept', async () => {
  for (const key of ['one', 'two', 'three']) await askAs(key, { prompt: beginning, maxTokens: 150, ignoreEnd: true });
  assert.ok((await untilKept()) > 600, 'most of the 768 cells');
  const longest = { prompt: beginning.toReversed(), maxTokens: 1000, ignoreEnd: true };
  const answers = await Promise.all([0, 1, 2].map(() => ring.askAlone(longest)));
  for (const { end, tokens } of answers) {
    assert.equal(end.reason, 'context-full');
    assert.equal(tokens.length, 256 - beginning.length + 1);
  }
  assert.equal(await untilKept(), 0, 'all of it made room');
});

test('nothing is left of a session but what is kept, whatever way it ended', async () => {
  const long = { prompt: beginning, maxTokens: 140, ignoreEnd: true };
  const ways: Readonly<Record<string, (held: HeldSession, lease: AbortController) => Promise<void>>> = {
    'closed in the middle of its text': async (held) => {
      await ring.submit(held.session, long);
      await held.letGo();
    },
    'cancelled, then closed': async (held) => {
      const request = await ring.submit(held.session, long);
      await ring.cancel(held.session, request);
      await held.letGo();
    },
    'its client is lost': async (held, lease) => {
      await ring.submit(held.session, long);
      lease.abort();
    },
    'its request failed on the tail': async (held) => {
      const dead = { ...long, sampling: { grammar: 'root ::= "x" root' } };
      await ring.hear(held.session, await ring.submit(held.session, dead));
      await held.letGo();
    },
    'nothing was asked in it': async (held) => {
      await held.letGo();
    },
  };
  for (const [name, end] of Object.entries(ways)) {
    const lease = new AbortController();
    await end(await openFor(name, lease.signal), lease);
    const kept = await untilKept();
    assert.ok(kept <= 768, name);
    assert.ok((await ring.headStatus()).prefixesKept <= keptPrefixes, name);
  }
});

test('a ring that lost a stage has forgotten what it kept, and a text that had adopted some of it goes on', async () => {
  const ask: Ask = {
    prompt: [...beginning, 300],
    maxTokens: 120,
    sampling: { temperature: 0.8, seed: 3 },
    ignoreEnd: true,
  };
  const whole = await ring.askAlone(ask);
  await askAs('lost', { prompt: beginning, maxTokens: 2, ignoreEnd: true });
  const held = await openFor('lost');
  const request = await ring.submit(held.session, ask);
  for await (const event of ring.calls.gather(held.session, request, ring.signal)) {
    if (event.event === 'token' && event.token.index === 20) break;
  }
  process.kill((await ring.node(1)).pid, 'SIGKILL');
  const answer = await ring.hear(held.session, request);
  assert.deepEqual(answer.tokens, whole.tokens);
  assert.deepEqual(agreedRows(answer.settlement), { prefilled: 1, decoded: 119, reused: beginning.length });
  const recomputed = answer.settlement.stages.map((stage) => stage.recomputed);
  assert.ok(Math.min(...recomputed) > beginning.length, 'its adopted rows ran again on every stage');
  await held.letGo();
  await untilKept();
});

test('infer shares what its prompts begin with, unless it is told not to', async () => {
  const infer = async (...more: string[]): Promise<number> => {
    const tokens = [...beginning, 7].join(',');
    const args = ['infer', ring.plan.path, '--tokens', tokens, '--max-tokens', '2', '--json', ...more];
    const { exit, out } = await agents.home.run(args);
    assert.equal(exit, 0);
    await untilKept();
    return Number(present(/"reusedTokens":(\d+)/.exec(out)?.[1], out));
  };
  assert.equal(await infer(), 0);
  assert.equal(await infer(), beginning.length);
  assert.equal(await infer('--no-reuse'), 0);
});

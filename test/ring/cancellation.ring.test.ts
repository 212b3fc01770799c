/**
 * A client that goes away, however and whenever it does: its slot is free again, no stage keeps a cell of its KV cache, what
 * ran is settled, and nobody else notices.
 *
 * What may still run after its end is what was on its way: at the head `limits.headFrames` frames, behind it a window of
 * frames on each edge, each frame at most one chunk of a prompt (`limits.cpuDecodeRows` rows) or one step of a text. A
 * stage that is paused (SIGSTOP) keeps a request in the phase that is wanted.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { limits } from '../../protocol/limits.ts';
import type { HeldSession } from '../../provisioner/ring-calls.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { agreedRows, type Answer, type Ask, type LoadedRing } from '../fixture/loaded-ring.ts';

/** One whose rows can be counted. */
type TokenAsk = Ask & { readonly prompt: readonly number[] };

/** Rows that are on their way while a stage behind the head stands still. */
const rowsOnTheWay = (limits.linkWindowFrames + limits.headFrames) * limits.cpuDecodeRows;
const promptTokens = 900;
const longPrompt = Array.from({ length: promptTokens }, (_none, index) => 6 + ((index * 37) % 1000));
const longAsk: TokenAsk = { prompt: longPrompt, maxTokens: 8 };
const storyAsk: TokenAsk = { prompt: [0, ...Buffer.from('Once')], maxTokens: 600, ignoreEnd: true };
const neighbourAsk: Ask = { prompt: 'Once upon a time', maxTokens: 40, sampling: { temperature: 0.8, seed: 7 } };

let agents: LocalAgents;
let ring: LoadedRing;
let neighbourText: string;
/** The ring's latest request: numbers go up by one. */
let latest = 0;

before(async () => {
  agents = await LocalAgents.start(2);
  const stages = [
    ['local', '0-1'],
    ['local-2', '2-4'],
    ['local', '5-7'],
  ] as const;
  // A command that is killed leaves a session that lingers as long as the deadline is.
  ring = await agents.load({ ring: 'cancel', stages, decode: 'exact', deadline: 1 });
  neighbourText = (await ring.askAlone(neighbourAsk)).text;
  latest = 1;
});
after(() => agents.stop());

/** A request that runs, and how its client goes away. */
interface Client {
  readonly session: number;
  readonly request: number;
  goAway(): Promise<void>;
}

type Way = (ask: TokenAsk) => Promise<Client>;

const ways: Readonly<Record<string, Way>> = {
  'a lease stream that is cancelled': async (ask) => {
    const lease = new AbortController();
    const { session } = await ring.open(lease.signal);
    latest = await ring.submit(session, ask);
    return {
      session,
      request: latest,
      goAway: async () => {
        await Promise.resolve();
        lease.abort();
      },
    };
  },
  'a session that is closed': async (ask) => {
    const held = await ring.open();
    latest = await ring.submit(held.session, ask);
    return { session: held.session, request: latest, goAway: () => held.letGo() };
  },
  'a request that is cancelled': async (ask) => {
    const held = await ring.open();
    latest = await ring.submit(held.session, ask);
    return { session: held.session, request: latest, goAway: () => cancelled(held, latest) };
  },
  'a command that is killed': async ({ prompt, maxTokens }) => {
    const { session } = await opened();
    const args = ['--tokens', prompt.join(','), '--max-tokens', String(maxTokens), '--temperature', '0'];
    const infer = agents.home.start(['infer', ring.plan.path, ...args, '--ignore-end', '--json']);
    await infer.says('"submitted"');
    latest += 1;
    return {
      session: session + 1,
      request: latest,
      goAway: async () => {
        infer.kill('SIGKILL');
        await infer.ended;
      },
    };
  },
};

/** The session that was just open: the next one has the number after it. */
async function opened(): Promise<HeldSession> {
  const held = await ring.open();
  await held.letGo();
  return held;
}

/** Cancelled alone, its session goes on; then it is let go too. */
async function cancelled(held: HeldSession, request: number): Promise<void> {
  const isRunning = (await ring.headStatus()).requestsRunning > 0;
  assert.equal(await ring.cancel(held.session, request), isRunning);
  assert.equal(await ring.cancel(held.session, request), false, 'there is nothing more to cancel');
  await held.letGo();
}

/** The bounds count from here: news of a client that is gone takes its time on the way. */
const headKnows = (): Promise<void> =>
  eventually(async () => (await ring.headStatus()).requestsRunning === 0, {
    what: 'the head knows that the client is gone',
  });

/** While a stage stands still. */
async function whilePaused<Result>(index: number, work: () => Promise<Result>): Promise<Result> {
  const { pid } = await ring.node(index);
  process.kill(pid, 'SIGSTOP');
  try {
    return await work();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

/** The request's readers are told of its end; then its receipts come home. */
async function settledAs(reason: string, { session, request }: Client): Promise<Answer> {
  const answer = await ring.hear(session, request);
  assert.equal(answer.end.reason, reason);
  assert.equal(answer.settlement.reason, reason);
  assert.equal(answer.settlement.emitted, answer.tokens.length, 'no token came after the end');
  await ring.untilEmpty();
  return answer;
}

/** Another session's text is what it is alone. */
async function besideANeighbour(work: () => Promise<void>): Promise<void> {
  const neighbour = ring.askAlone(neighbourAsk);
  latest += 1;
  const [{ text }] = await Promise.all([neighbour, work()]);
  assert.equal(text, neighbourText);
}

for (const [name, way] of Object.entries(ways)) {
  describe(name, () => {
    test('before its prompt has run', async () => {
      const client = await whilePaused(0, async () => {
        const running = await way(longAsk);
        await running.goAway();
        await headKnows();
        return running;
      });
      const { settlement } = await settledAs('cancelled', client);
      assert.ok(agreedRows(settlement).prefilled <= limits.headFrames * limits.cpuDecodeRows);
      assert.equal(settlement.emitted, 0);
    });

    test('in the middle of a long prompt', async () => {
      const before = Number((await ring.node(0)).prefilledRows);
      const client = await whilePaused(1, async () => {
        const running = await way(longAsk);
        const hasBegun = async (): Promise<boolean> => Number((await ring.node(0)).prefilledRows) > before;
        await eventually(hasBegun, { what: 'the head has run a part of the prompt' });
        await running.goAway();
        await headKnows();
        return running;
      });
      const { prefilled, decoded } = agreedRows((await settledAs('cancelled', client)).settlement);
      assert.ok(prefilled > 0 && prefilled <= rowsOnTheWay, `${String(prefilled)} rows of ${String(promptTokens)} ran`);
      assert.equal(decoded, 0);
    });

    test('in the middle of a text, beside a neighbour', () =>
      besideANeighbour(async () => {
        const client = await way(storyAsk);
        for await (const event of ring.calls.gather(client.session, client.request, ring.signal)) {
          if (event.event === 'token' && event.token.index === 5) break;
        }
        await client.goAway();
        const { settlement } = await settledOnly(client);
        const { prefilled, decoded } = agreedRows(settlement);
        assert.equal(prefilled, storyAsk.prompt.length);
        assert.ok(settlement.emitted >= 6 && settlement.emitted < 600);
        assert.ok([settlement.emitted - 1, settlement.emitted].includes(decoded), 'at most one step was on its way');
      }));

    test('after its end', async () => {
      const client = await way({ ...storyAsk, maxTokens: 4 });
      await eventually(async () => (await ring.headStatus()).requestsRunning === 0, { what: 'it has ended' });
      await client.goAway();
      const { settlement } = await settledAs('length', client);
      assert.deepEqual(agreedRows(settlement), { prefilled: storyAsk.prompt.length, decoded: 3, reused: 0 });
    });
  });
}

/** While a neighbour runs on: its cells are in use. */
async function settledOnly({ session, request }: Client): Promise<Answer> {
  const answer = await ring.hear(session, request);
  assert.equal(answer.end.reason, 'cancelled');
  assert.equal(answer.settlement.emitted, answer.tokens.length);
  return answer;
}

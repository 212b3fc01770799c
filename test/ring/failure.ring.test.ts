/**
 * What is lost comes back, and what was admitted is finished with the same words: a stage, an agent, a stage that stands
 * still (R1 to R4). Other rings on the same agents serve on.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { agreedRows, type Ask, type LoadedRing } from '../fixture/loaded-ring.ts';

const story: Ask = { prompt: 'Once upon a time', maxTokens: 24 };
const longStory = ['Once upon a time', '--max-tokens', '400', '--ignore-end', '--temperature', '0'];

let agents: LocalAgents;
/** Both stages under the first agent. */
let here: LoadedRing;
/** The head under the first agent, the tail under the second. */
let across: LoadedRing;
let text: string;

before(async () => {
  agents = await LocalAgents.start(3);
  const host = 'local';
  here = await agents.load({
    ring: 'here',
    decode: 'exact',
    stages: [
      [host, '0-3'],
      [host, '4-7'],
    ],
  });
  across = await agents.load({
    ring: 'across',
    decode: 'exact',
    stages: [
      [host, '0-3'],
      ['local-2', '4-7'],
    ],
  });
  ({ text } = await here.askAlone(story));
  assert.equal((await across.askAlone(story)).text, text);
});
after(() => agents.stop());

/** One request after another, each answered as ever, while something happens to another ring. */
async function served(ring: LoadedRing, happening: () => Promise<void>): Promise<void> {
  let isOver = false;
  const serve = async (): Promise<number> => {
    let requests = 0;
    while (!isOver || requests < 3) {
      const answer = await ring.askAlone(story);
      assert.equal(answer.text, text);
      requests += 1;
    }
    return requests;
  };
  const serving = serve();
  // A failure of either ends both.
  await Promise.race([happening(), serving.then(() => undefined)]).finally(() => {
    isOver = true;
  });
  assert.ok((await serving) >= 3);
}

/** A command that streams a story while something happens to its ring: the JSON lines it printed. */
async function tellThrough(ring: LoadedRing, happening: () => Promise<void>): Promise<string> {
  const infer = agents.home.start(['infer', ring.plan.path, ...longStory, '--json']);
  await infer.says('"index":5');
  await happening();
  const { exit, out, err } = await infer.ended;
  assert.equal(exit, 0, err);
  return out;
}

/** The tokens of a command's JSON lines, in order. */
const tokensOf = (out: string): readonly string[] =>
  [...out.matchAll(/"token":(\d+)/g)].map(([, token]) => token ?? '');

const kill = async (pid: number): Promise<void> => Promise.resolve(void process.kill(pid, 'SIGKILL'));

const ready = (ring: LoadedRing): Promise<void> =>
  eventually(async () => (await agents.home.run(['status', ring.plan.path])).exit === 0, {
    what: `${ring.name} is ready again`,
    withinMs: 30_000,
  });

async function loadedAgain(ring: LoadedRing): Promise<void> {
  const { exit, err } = await agents.home.run(['load', ring.plan.path]);
  assert.equal(exit, 0, err);
}

describe('a stage that is killed while a story streams', () => {
  for (const index of [0, 1]) {
    test(`comes back by itself, and the story is the undisturbed one: node ${index}, under one agent`, async () => {
      const undisturbed = await agents.home.run(['infer', here.plan.path, ...longStory, '--json']);
      await served(across, async () => {
        const { pid } = await here.node(index);
        const out = await tellThrough(here, () => kill(pid));
        assert.deepEqual(tokensOf(out), tokensOf(undisturbed.out));
        assert.match(out, new RegExp(`"event":"paused","code":"STAGE_LOST",.*"host":"local","node":${index},`));
        assert.match(out, /"event":"resumed"/);
      });
      await ready(here);
      await here.untilEmpty();
    });
  }

  test('under another agent than the head is named too; receipts agree on all rows but those that ran again', async () => {
    const ask = { prompt: 'Once upon a time', maxTokens: 300, ignoreEnd: true };
    const twin = await across.askAlone(ask);
    const held = await across.open();
    const request = await across.submit(held.session, ask);
    const { pid } = await across.node(1);
    await eventually(async () => Number((await across.node(1)).decodedRows) > 320, { what: 'it is told' });
    await kill(pid);
    const answer = await across.hear(held.session, request);
    assert.equal(answer.text, twin.text);
    assert.deepEqual(agreedRows(answer.settlement), agreedRows(twin.settlement));
    assert.ok(answer.settlement.stages.every(({ recomputed }) => recomputed > 0));
    assert.ok(twin.settlement.stages.every(({ recomputed }) => recomputed === 0));
    assert.deepEqual(await across.calls.settle(held.session, request, across.signal), answer.settlement);
    await held.letGo();
    await across.untilEmpty();
  });

  test('of the head holds up the prompts that come while it loads again, whenever they come', async () => {
    const { pid } = await here.node(0);
    await kill(pid);
    const asked: Promise<string>[] = [];
    const isBack = new AbortController();
    const back = ready(here).finally(() => {
      isBack.abort();
    });
    while (!isBack.signal.aborted) {
      if (asked.length < limits.waitingSessions) asked.push(here.tell(story));
      await delay(25);
    }
    await back;
    assert.ok(asked.length > 4, `${asked.length} prompts came meanwhile`);
    for (const told of await Promise.all(asked)) assert.equal(told, text);
    await here.untilEmpty();
  });

  test('in a session that is quiet: what it held is there when it is asked again', async () => {
    const asked = async (between: () => Promise<void>): Promise<readonly string[]> => {
      const held = await across.open();
      const first = await across.ask(held.session, { ...story, ignoreEnd: true });
      await between();
      const second = await across.ask(held.session, { prompt: ' Then', maxTokens: 24, ignoreEnd: true });
      await held.letGo();
      return [first.text, second.text, JSON.stringify(agreedRows(second.settlement))];
    };
    const undisturbed = await asked(() => Promise.resolve());
    const disturbed = await asked(async () => {
      await kill((await across.node(0)).pid);
      await ready(across);
    });
    assert.deepEqual(disturbed, undisturbed);
  });
});

describe('an agent that is killed while a story streams', () => {
  test('is waited for: loaded again by the same load, its ring goes on with the story (R2, G6)', async () => {
    const undisturbed = await agents.home.run(['infer', across.plan.path, ...longStory, '--json']);
    for (const host of ['local-2', 'local']) {
      const out = await tellThrough(across, async () => {
        await agents.agent(host).kill();
        await agents.agent(host).start();
        const status = await agents.home.run(['status', across.plan.path]);
        assert.equal(status.exit, 3);
        assert.match(status.out, new RegExp(`degraded|claimed on ${host}`));
        await loadedAgain(across);
      });
      assert.deepEqual(tokensOf(out), tokensOf(undisturbed.out));
    }
    await loadedAgain(here);
    assert.equal((await here.askAlone(story)).text, text);
  });

  test('and does not come back fails the request when the deadline is over, and nothing else', async () => {
    const brief = await agents.load({
      ring: 'brief',
      deadline: 3,
      stages: [
        ['local', '0-3'],
        ['local-3', '4-7'],
      ],
    });
    await served(here, async () => {
      const infer = agents.home.start(['infer', brief.plan.path, ...longStory, '--json']);
      await infer.says('"index":5');
      await agents.agent('local-3').kill();
      const { exit, out, err } = await infer.ended;
      assert.equal(exit, 4, out);
      assert.equal(err.match(/RING_LOST/g)?.length, 1, err);
      assert.match(err, /stage 1 on host local-3: AGENT_UNREACHABLE/);
      assert.match(err, /not back within 3 s/);
    });
    await assert.rejects(brief.open(), (error) => error instanceof P4Error && error.facts['host'] === 'local-3');
    await agents.agent('local-3').start();
    await loadedAgain(brief);
    assert.equal((await brief.askAlone(story)).text, text);
    const { exit, err } = await agents.home.run(['unload', brief.plan.path]);
    assert.equal(exit, 0, err);
  });

  test('can be unloaded by its own number when nothing of it runs', async () => {
    await agents.agent('local').kill();
    await agents.agent('local').start();
    await assert.rejects(here.open(), { code: 'RING_EMPTY' });
    const { exit, err } = await agents.home.run(['unload', here.plan.path]);
    assert.equal(exit, 0, err);
    assert.deepEqual((await agents.status('local', here.name)).rings, []);
    here = await agents.load({
      ring: 'here',
      decode: 'exact',
      stages: [
        ['local', '0-3'],
        ['local', '4-7'],
      ],
    });
    await loadedAgain(across);
    for (const ring of [here, across]) assert.equal((await ring.askAlone(story)).text, text);
  });
});

describe('a stage that stands still', () => {
  const prompt = Array.from({ length: 900 }, (_none, index) => 6 + (index % 1000));

  test('holds its ring back: no agent grows while long prompts wait, and what is cancelled is freed when it goes on', async () => {
    const { pid } = await across.node(1);
    const held = await Promise.all(Array.from({ length: 4 }, () => across.open()));
    const hosts = agents.hosts.map((host) => agents.agent(host));
    process.kill(pid, 'SIGSTOP');
    try {
      const before = hosts.map(({ residentBytes }) => residentBytes);
      const ran = Number((await across.node(0)).prefilledRows);
      const requests = await Promise.all(held.map(({ session }) => across.submit(session, { prompt, maxTokens: 8 })));
      const rows = limits.linkWindowFrames * limits.cpuDecodeRows;
      const headRan = async (): Promise<number> => Number((await across.node(0)).prefilledRows) - ran;
      await eventually(async () => (await headRan()) > 0, { what: 'the head has run a part of a prompt' });
      await served(here, () => Promise.resolve());
      assert.ok((await headRan()) <= rows, 'the head runs no further than the window');
      for (const [index, { residentBytes }] of hosts.entries()) {
        // A window of frames, and what serving the other ring takes.
        assert.ok(residentBytes - (before[index] ?? 0) < 32 * 2 ** 20, 'an agent does not grow');
      }
      for (const each of held) await each.letGo();
      process.kill(pid, 'SIGCONT');
      await across.untilEmpty();
      for (const [index, request] of requests.entries()) {
        const settlement = await across.calls.settle(held[index]?.session ?? 0, request, across.signal);
        assert.equal(settlement.reason, 'cancelled');
        assert.ok(agreedRows(settlement).prefilled <= rows + limits.headFrames * limits.cpuDecodeRows);
      }
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    assert.equal((await across.askAlone(story)).text, text);
  });

  test('keeps clients that come and go from piling up: the ring says that it is stalled, and is whole when it goes on', async () => {
    const { pid } = await here.node(0);
    process.kill(pid, 'SIGSTOP');
    const answers = new Set<string>();
    const comeAndGo = async (): Promise<void> => {
      for (let visits = 0; visits < 2 * limits.waitingItems && !answers.has('RING_STALLED'); visits += 1) {
        answers.add(await visit(here));
      }
    };
    try {
      await Promise.all(Array.from({ length: 4 }, comeAndGo));
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    assert.deepEqual([...answers], ['opened', 'RING_STALLED']);
    await here.untilEmpty();
    assert.equal((await here.askAlone(story)).text, text);
  });
});

/** A client that opens a session, asks for something and goes. */
async function visit(ring: LoadedRing): Promise<string> {
  try {
    const held = await ring.open();
    await ring.submit(held.session, { prompt: [0] }).finally(() => held.letGo());
    return 'opened';
  } catch (error) {
    if (error instanceof P4Error) return error.code;
    throw error;
  }
}

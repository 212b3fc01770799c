/**
 * What fails, fails alone: a stage, an agent, a stage that stands still. Other rings on the same agents serve on, and
 * `load` brings the lost one back under the same generation.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { agreedRows, type Ask, type LoadedRing } from '../fixture/loaded-ring.ts';

const story: Ask = { prompt: 'Once upon a time', maxTokens: 24 };
const endless = ['Once upon a time', '--max-tokens', '900', '--ignore-end', '--temperature', '0', '--json'];

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

/** A command that streams a story until the ring is lost: one clear error. */
async function streamUntilLost(ring: LoadedRing, lose: () => Promise<void>): Promise<string> {
  const infer = agents.home.start(['infer', ring.plan.path, ...endless]);
  await infer.says('"index":5');
  await lose();
  const { exit, out, err } = await infer.ended;
  assert.equal(exit, 4, `${out}${err}`);
  assert.equal(err.match(/RING_LOST/g)?.length, 1, err);
  assert.equal(out.match(/"ring-lost"/g)?.length, 1, out.slice(-500));
  return err;
}

function generationOf(ring: LoadedRing): string {
  const file = readFileSync(join(agents.state.generations, `${ring.name}.json`), 'utf8');
  return /"generation": "(\d+)"/.exec(file)?.[1] ?? 'none';
}

/** Loaded again by the command, the ring answers as before under the number it had. */
async function loadsAgain(ring: LoadedRing): Promise<void> {
  const number = generationOf(ring);
  assert.equal(number, ring.generation.toString());
  const { exit, err } = await agents.home.run(['load', ring.plan.path]);
  assert.equal(exit, 0, err);
  assert.equal(generationOf(ring), number);
  assert.equal((await ring.askAlone(story)).text, text);
  await ring.untilEmpty();
}

describe('a stage that is killed while a story streams', () => {
  test('ends its own ring with one error that names it; the other ring serves on; load brings it back', async () => {
    await served(across, async () => {
      const { pid } = await here.node(1);
      const error = await streamUntilLost(here, () => Promise.resolve(void process.kill(pid, 'SIGKILL')));
      assert.match(error, /node 1\b/);
      assert.match(error, /host local\b/);
      assert.match(error, /SIGKILL/);
    });
    const status = await agents.home.run(['status', here.plan.path]);
    assert.equal(status.exit, 3);
    assert.match(status.out, /Ring here: lost on local/);
    assert.match(status.out, /1 +local +4-7 +lost/);
    await assert.rejects(here.open(), { code: 'STAGE_LOST' });
    await loadsAgain(here);
    assert.equal((await agents.home.run(['status'])).exit, 0);
  });

  test('under another agent than the head is named too', async () => {
    await served(here, async () => {
      const { pid } = await across.node(1);
      const error = await streamUntilLost(across, () => Promise.resolve(void process.kill(pid, 'SIGKILL')));
      assert.match(error, /node 1\b/);
      assert.match(error, /host local-2\b/);
    });
    await loadsAgain(across);
  });
});

describe('a stage that is killed between two other hosts', () => {
  test('is named, not the neighbour through whom the head hears of it', async () => {
    const wide = await agents.load({
      ring: 'wide',
      stages: [
        ['local', '0-2'],
        ['local-2', '3-5'],
        ['local-3', '6-7'],
      ],
    });
    const { pid } = await wide.node(1);
    const error = await streamUntilLost(wide, () => Promise.resolve(void process.kill(pid, 'SIGKILL')));
    assert.match(error, /node 1\b/);
    assert.match(error, /host local-2\b/);
    assert.match(error, /SIGKILL/);
    const { exit, err } = await agents.home.run(['unload', wide.plan.path]);
    assert.equal(exit, 0, err);
  });
});

describe('an agent that is killed while a story streams', () => {
  test('takes its stages with it and the rings it had a part in, and no other', async () => {
    const { pid } = await across.node(1);
    await served(here, async () => {
      const error = await streamUntilLost(across, () => agents.agent('local-2').kill());
      assert.match(error, /host local-2\b/);
    });
    const isGone = (): boolean => !agents.home.processes().some((line) => line.startsWith(`${String(pid)} `));
    await eventually(isGone, { what: 'its stage ends with it' });
    const { exit, out } = await agents.home.run(['status']);
    assert.equal(exit, 3);
    assert.match(out, /local-2 +\S+ +AGENT_UNREACHABLE/);
    assert.match(out, /Ring across: lost on local/);
    assert.match(out, /Ring here: ready on local/);
  });

  test('is found claimed and empty when it is back, and the same load replays it (R2, G6)', async () => {
    await agents.agent('local-2').start();
    const status = await agents.home.run(['status', across.plan.path]);
    assert.equal(status.exit, 3);
    assert.match(status.out, /claimed on local-2/);
    await loadsAgain(across);
  });

  test('can be the head’s: its ring comes back too, and is unloaded by its own number alone', async () => {
    await agents.agent('local').kill();
    await agents.agent('local').start();
    await loadsAgain(across);
    // Nothing of `here` runs any more: its number alone frees its name.
    await assert.rejects(here.open(), { code: 'RING_EMPTY' });
    const { exit, err } = await agents.home.run(['unload', here.plan.path]);
    assert.equal(exit, 0, err);
    const { rings } = await agents.status('local', here.name);
    assert.deepEqual(rings, []);
    here = await agents.load({
      ring: 'here',
      decode: 'exact',
      stages: [
        ['local', '0-3'],
        ['local', '4-7'],
      ],
    });
    assert.equal((await here.askAlone(story)).text, text);
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

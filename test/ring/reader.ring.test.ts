/** `infer` and `settle` while the ring or the way to it is lost: the text is told once, whole, and as if nothing had been. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { LocalAgents, type RingPlan } from '../fixture/local-agents.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';
import { eventually } from '../fixture/eventually.ts';
import type { RunningCommand } from './command-home.ts';

const plan: RingPlan = {
  ring: 'tale',
  decode: 'exact',
  deadline: 30,
  stages: [
    ['local', '0-3'],
    ['local-2', '4-7'],
  ],
};
const prompt = 'Once upon a time';
const seeded = ['--seed', '7', '--max-tokens', '300', '--ignore-end'];

let agents: LocalAgents;
let ring: LoadedRing;
let path: string;
/** What an undisturbed `infer` prints. */
let whole: string;

before(async () => {
  agents = await LocalAgents.start(2);
  ring = await agents.load(plan);
  ({ path } = ring.plan);
  const { exit, out, err } = await agents.home.run(['infer', path, prompt, ...seeded]);
  assert.equal(exit, 0, err);
  whole = out;
});
after(async () => {
  await agents.stop();
});

/** An `infer` that has begun to tell. */
const telling = (...options: readonly string[]): Promise<RunningCommand> => tellingOf(path, ...options);

async function tellingOf(planPath: string, ...options: readonly string[]): Promise<RunningCommand> {
  const infer = agents.home.start(['infer', planPath, prompt, ...seeded, ...options]);
  const parts = options.includes('--json') ? /"token"/g : /\w+/g;
  await eventually(() => [...infer.out.matchAll(parts)].length > 20, { what: 'the text has begun' });
  return infer;
}

interface Line {
  readonly event: string;
  readonly request?: number;
  readonly index?: number;
  readonly text?: string;
}

const linesOf = (out: string): readonly Line[] =>
  out
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
const textOf = (lines: readonly Line[]): string => lines.map(({ text }) => text ?? '').join('');

describe('infer', () => {
  test('pauses when a stage is killed, says which and until when, and tells the whole text', async () => {
    const { pid } = await ring.node(1);
    const infer = await telling();
    process.kill(pid, 'SIGKILL');
    const { exit, out, err } = await infer.ended;
    assert.equal(exit, 0, err);
    assert.equal(out, whole);
    assert.match(err, /stage 1 on host local-2 is lost \(STAGE_LOST.*\): waiting until \d\d:\d\d:\d\d\n/);
    assert.match(err, /going on\n/);
  });

  test('tells the whole text across a death of the head’s agent, which the same load brings back', async () => {
    const infer = await telling();
    await agents.agent('local').kill();
    await agents.agent('local').start();
    await agents.load(plan);
    const { exit, out, err } = await infer.ended;
    assert.equal(exit, 0, err);
    assert.equal(out, whole);
    assert.match(err, /the connection to the head's agent on host local is lost/);
  });

  test('says which stage is halted, while status is red, and tells the whole text when it goes on', async () => {
    const { pid } = await ring.node(1);
    const infer = await telling();
    process.kill(pid, 'SIGSTOP');
    try {
      const said = /^no token comes: stage 1 on host local-2: it has not answered for \d+ s/m;
      await eventually(() => said.test(infer.err), { what: 'infer says whom it waits for', withinMs: 25_000 });
      const { exit, out } = await agents.home.run(['status', path]);
      assert.equal(exit, 3);
      assert.match(out, /^Ring tale: degraded: ready on local, silent on local-2$/m);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    assert.equal((await infer.ended).exit, 0);
    assert.equal(infer.out, whole);
    await eventually(async () => (await agents.home.run(['status', path])).exit === 0, { what: 'the ring is ready' });
  });

  test('that is killed is read on by another one, from any token, and its session freed in the end', async () => {
    const first = await telling('--json');
    first.kill('SIGKILL');
    await first.ended;
    const seen = linesOf(first.out);
    const request = seen.find(({ event }) => event === 'submitted')?.request;
    const next = seen.filter(({ event }) => event === 'token').length;
    assert.ok(request !== undefined && next > 0);
    const on = await agents.home.run(['infer', path, '--request', String(request), '--from', String(next)]);
    assert.equal(on.exit, 0, on.err);
    assert.equal(textOf(seen) + on.out, whole);
    await ring.untilEmpty();
    const again = await agents.home.run(['infer', path, '--request', String(request), '--json']);
    assert.equal(textOf(linesOf(again.out)), whole, 'from its first token on, after its end too');
  });

  test('that is only a reader leaves the request to the next reader, and says how', async () => {
    const first = await telling('--json');
    first.kill('SIGKILL');
    await first.ended;
    const request = linesOf(first.out).find(({ event }) => event === 'submitted')?.request ?? 0;
    const reader = agents.home.start(['infer', path, '--request', String(request), '--json']);
    await reader.says('"token"');
    reader.kill('SIGINT');
    const left = await reader.ended;
    assert.equal(left.exit, 130);
    const off = linesOf(left.out).at(-1) as Line & { readonly command?: string };
    assert.equal(off.event, 'broken-off');
    assert.match(off.command ?? '', new RegExp(`--request ${String(request)} --from \\d+$`));
    const last = await agents.home.run(['infer', path, '--request', String(request)]);
    assert.equal(last.out, whole);
  });

  test('refuses what does not go together, and a request that never was', async () => {
    for (const options of [
      ['--from', '3', prompt],
      ['--request', '1', prompt],
      ['--request', '1', '--seed', '2'],
    ]) {
      const { exit, err } = await agents.home.run(['infer', path, ...options]);
      assert.equal(exit, 2, err);
    }
    const { exit, err } = await agents.home.run(['infer', path, '--request', '4000000']);
    assert.match(err, /^REQUEST_UNKNOWN/m);
    assert.equal(exit, 3);
  });
});

describe('infer past the deadline', () => {
  const brief: RingPlan = { ...plan, ring: 'brief', deadline: 2 };

  test('ends with one error that names stage and host; the request is settled when the ring is back', async () => {
    const short = await agents.load(brief);
    const infer = await tellingOf(short.plan.path, '--json');
    await agents.agent('local-2').kill();
    const { exit, out, err } = await infer.ended;
    assert.equal(exit, 4, err);
    const error = JSON.parse(err) as { readonly code: string; readonly facts: { readonly detail: string } };
    assert.equal(error.code, 'RING_LOST');
    assert.match(error.facts.detail, /local-2/);
    const pauses = linesOf(out).filter(({ event }) => event === 'paused');
    assert.equal(pauses.length, 1, JSON.stringify(pauses));
    const degraded = await agents.home.run(['status', short.plan.path]);
    assert.equal(degraded.exit, 3);
    assert.match(degraded.out, /^Ring brief: degraded for \d+ s: suspended on local, no answer from local-2$/m);
    await agents.agent('local-2').start();
    const claimed = await agents.home.run(['status', short.plan.path]);
    assert.match(claimed.out, /to have it ready again: npm run load -- /);
    await agents.load(brief);
    const request = String(linesOf(out).find(({ event }) => event === 'submitted')?.request);
    const settled = await agents.home.run(['settle', short.plan.path, '--request', request]);
    assert.equal(settled.exit, 0, settled.err);
    assert.match(settled.out, /ended \(ring-lost\)/);
    // The other ring had a part on that host too.
    await agents.load(plan);
  });

  test('of a head’s agent that does not come back says how to read on', async () => {
    const short = await agents.load(brief);
    const infer = await tellingOf(short.plan.path);
    await agents.agent('local').kill();
    const { exit, err } = await infer.ended;
    assert.equal(exit, 4, err);
    assert.match(err, /^REQUEST_CUT_OFF: /m);
    assert.match(err, /^ +host: local$/m);
    assert.match(err, /^npm run infer -- \S+ --request \d+ --from \d+ goes on from here$/m);
    await agents.agent('local').start();
    await agents.load(brief);
    await agents.load(plan);
  });
});

describe('settle', () => {
  test('says the same however often it is asked, with rows that a loss made stages run again apart', async () => {
    const { pid } = await ring.node(0);
    const infer = await telling('--json');
    process.kill(pid, 'SIGKILL');
    const { out } = await infer.ended;
    const request = String(linesOf(out).find(({ event }) => event === 'submitted')?.request);
    const ask = async (): Promise<string> =>
      (await agents.home.run(['settle', path, '--request', request, '--json'])).out;
    const said = await ask();
    assert.equal(await ask(), said);
    const { state, usage, stages } = JSON.parse(said) as {
      state: string;
      usage: object;
      stages: readonly { prefilled: number; decoded: number; recomputed: number }[];
    };
    assert.equal(state, 'settled');
    assert.deepEqual(usage, { promptTokens: 5, completionTokens: 300, totalTokens: 305, reusedTokens: 0 });
    assert.deepEqual(
      stages.map(({ prefilled, decoded }) => [prefilled, decoded]),
      [
        [5, 299],
        [5, 299],
      ],
    );
    assert.ok(stages.every(({ recomputed }) => recomputed > 0));
    const table = await agents.home.run(['settle', path, '--request', request]);
    assert.match(table.out, /^Request \d+ ended \(length\) after 300 tokens\.$/m);
    assert.match(table.out, /^ +0 +local +0-3 +5 +299 /m);
  });

  test('says that a request is running, and settles one that was cancelled', async () => {
    const { pid } = await ring.node(1);
    const infer = await telling('--json');
    process.kill(pid, 'SIGSTOP');
    try {
      const request = String(linesOf(infer.out).find(({ event }) => event === 'submitted')?.request);
      const running = await agents.home.run(['settle', path, '--request', request]);
      assert.equal(running.exit, 3, running.err);
      assert.match(running.out, /is running/);
      infer.kill('SIGINT');
      assert.equal((await infer.ended).exit, 130);
      process.kill(pid, 'SIGCONT');
      const settled = await agents.home.run(['settle', path, '--request', request]);
      assert.equal(settled.exit, 0, settled.err);
      assert.match(settled.out, /ended \(cancelled\)/);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
  });
});

/** The demonstration as a stranger runs it, to its end and with Ctrl-C at any moment. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { CommandHome } from './command-home.ts';

const interruptions = 6;
const short = ['demo', '--max-tokens', '24'];

async function withHome(body: (home: CommandHome) => Promise<void>): Promise<void> {
  const home = new CommandHome();
  try {
    await body(home);
  } finally {
    await home.remove();
  }
}

async function assertNothingLeft(home: CommandHome, when: string): Promise<void> {
  assert.deepEqual(await home.processesLeft(), [], `processes left ${when}`);
  assert.deepEqual(home.temporaryFiles(), [], `files left ${when}`);
}

test('the demonstration tells a story, then what each stage did, and leaves nothing behind', () =>
  withHome(async (home) => {
    const demo = home.start(short);
    await demo.says('The story');
    assert.equal(home.processes().length, 6, 'the command, an agent and four stages run, and are found');
    assert.ok(home.temporaryFiles().some((name) => name.endsWith('.sock')));
    const { exit, out, err } = await demo.ended;
    assert.equal(exit, 0, err);
    assert.match(out, /generation \d+, written in .*generations\/stories\.json/);
    assert.match(out, /Once upon a time\S* \S+/);
    for (const layers of ['0-1', '2-3', '4-5', '6-7']) {
      assert.match(out, new RegExp(`local +${layers} +5 +23 +[0-9.]+`), `rows of layers ${layers}`);
    }
    assert.match(out, /[0-9.]+ tokens per second/);
    await assertNothingLeft(home, 'after the end');
  }));

test('two agents tell the story that one tells, and count what crossed between them', () =>
  withHome(async (home) => {
    const [one, two] = [await home.run([...short, '--json']), await home.run([...short, '--json', '--agents', '2'])];
    assert.equal(one.exit, 0, one.err);
    assert.equal(two.exit, 0, two.err);
    assert.equal(tokensOf(one.out).length, 24);
    assert.deepEqual(tokensOf(two.out), tokensOf(one.out));
    const agents = eventsOf(two.out, 'agents').flatMap(({ agents: each }) => each as { readonly pid: number }[]);
    assert.equal(new Set(agents.map(({ pid }) => pid)).size, 2);
    const links = eventsOf(two.out, 'links').flatMap(({ links: each }) => each as { readonly bytes: string }[]);
    assert.equal(links.length, 2);
    // 28 rows of 192 float32 cross from stage 1 to stage 2.
    assert.ok(Number(links[0]?.bytes) > 28 * 192 * 4);
    assert.deepEqual(
      eventsOf(one.out, 'links').flatMap(({ links: each }) => each as unknown[]),
      [],
    );
    await assertNothingLeft(home, 'after the end');
  }));

test('Ctrl-C at any moment ends everything', { timeout: 550_000 }, (context) =>
  withHome(async (home) => {
    const whole = await home.run(short);
    assert.equal(whole.exit, 0, whole.err);
    for (let round = 1; round <= interruptions; round += 1) {
      const afterMs = randomInt(Math.ceil(whole.durationMs * 0.9));
      const demo = home.start([...short, '--agents', String(1 + (round % 2))]);
      await pause(afterMs);
      demo.kill('SIGINT');
      const { exit, out, err } = await demo.ended;
      const when = `after Ctrl-C at ${afterMs} ms`;
      // 0 only where it came too late: the last word had been said.
      assert.equal(exit, out.includes('Every process has ended') ? 0 : 130, `${when}: ${out}${err}`);
      context.diagnostic(`${when}: exit ${exit}`);
      await assertNothingLeft(home, when);
    }
  }),
);

test('an impatient Ctrl-C, many times over, changes nothing', () =>
  withHome(async (home) => {
    const demo = home.start(short);
    await demo.says('Cutting');
    for (let press = 0; press < 10; press += 1) {
      demo.kill('SIGINT');
      await pause(20);
    }
    assert.equal((await demo.ended).exit, 130);
    await assertNothingLeft(home, 'after Ctrl-C');
  }));

test('a command that is killed outright takes its agents and stages with it', () =>
  withHome(async (home) => {
    const demo = home.start(['demo']);
    await demo.says('The story');
    demo.kill('SIGKILL');
    await demo.ended;
    assert.deepEqual(await home.processesLeft(15_000), []);
    assert.deepEqual(
      home.temporaryFiles().filter((name) => name.endsWith('.sock')),
      [],
      'no socket is left',
    );
  }));

const eventsOf = (out: string, kind: string): readonly Readonly<Record<string, unknown>>[] =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === kind);

const tokensOf = (out: string): readonly unknown[] => eventsOf(out, 'token').map(({ token }) => token);

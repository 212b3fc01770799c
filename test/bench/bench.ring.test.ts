import assert from 'node:assert/strict';
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, suite, test } from 'node:test';

import { eventually } from '../fixture/eventually.ts';
import { usualParts } from './part.ts';

const main = join(import.meta.dirname, 'main.js');
const home = mkdtempSync(join(tmpdir(), 'p4-bench-test-'));

function start(args: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
  const child = spawn(process.execPath, ['--enable-source-maps', main, ...args], {
    // Sockets go to the folder for temporary files when there is no other for them.
    env: { ...process.env, TMPDIR: home, XDG_RUNTIME_DIR: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 240_000,
    killSignal: 'SIGKILL',
  });
  child.stdout.setEncoding('utf8');
  child.stderr.setEncoding('utf8');
  return child;
}

async function run(args: readonly string[]): Promise<{ exit: number | null; out: string; err: string }> {
  const child = start(args);
  let out = '';
  let err = '';
  child.stdout.on('data', (text: string) => (out += text));
  child.stderr.on('data', (text: string) => (err += text));
  await once(child, 'close');
  return { exit: child.exitCode, out, err };
}

/** Processes that were started with this test's folder for temporary files. */
function processes(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => environment(pid).includes(`TMPDIR=${home}`));
}

function environment(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return []; // It has just ended.
  }
}

async function assertNothingLeft(): Promise<void> {
  await eventually(() => processes().length === 0, { what: 'no process is left' });
  assert.deepEqual(readdirSync(home), []);
}

suite('the benchmark', () => {
  after(() => {
    for (const pid of processes()) process.kill(Number(pid), 'SIGKILL');
    rmSync(home, { recursive: true, force: true });
  });

  test('prints one JSON object with every part and every figure, and leaves nothing behind', async () => {
    const { exit, out, err } = await run(['--quick', '--json']);
    assert.equal(exit, 0, err);
    const { parts, verdicts } = JSON.parse(out) as {
      readonly parts: Readonly<Record<string, object>>;
      readonly verdicts: readonly {
        readonly figure: string;
        readonly found: { readonly median: number; readonly runs: number };
        readonly target: { readonly value: number } | null;
        readonly isMet: boolean | null;
      }[];
    };
    assert.deepEqual(Object.keys(parts), usualParts);
    for (const { figure, found, target, isMet } of verdicts) {
      assert.ok(Number.isFinite(found.median) && found.runs === 1, figure);
      assert.equal(isMet === null, target === null, figure);
    }
    const targets = verdicts.flatMap(({ target }) => (target === null ? [] : [target.value]));
    assert.deepEqual(targets, [0.98, 0.97, 1, 1, 0.4, 1.5, 1.7, 1.8, 3, 0.25, 0.98, 0.1, 0.99, 1.05]);
    const { arms, links, memory } = parts.single as {
      readonly arms: Readonly<Record<string, { readonly decodeTokensPerSecond: { readonly median: number } }>>;
      readonly links: readonly unknown[];
      readonly memory: readonly { readonly name: string; readonly residentBytes: number }[];
    };
    assert.deepEqual(Object.keys(arms), ['uncut', 'one agent', 'two agents']);
    for (const arm of Object.values(arms)) assert.ok(arm.decodeTokensPerSecond.median > 0);
    assert.equal(links.length, 2, 'two stages under two agents have a link each way');
    // The uncut model, two agents, two stages for each ring, and the command itself.
    assert.equal(memory.length, 8);
    for (const { name, residentBytes } of memory) assert.ok(residentBytes > 1e6, name);
    await assertNothingLeft();
  });

  test('measures the parts that are asked for, beside the command of somebody else', async () => {
    const baseline = ['--baseline', 'echo 12.5 tokens/s'];
    const { exit, out, err } = await run(['--quick', '--only', 'single,decay', ...baseline]);
    assert.equal(exit, 0, err);
    assert.match(out, /^figure +target +median .*runs$/m);
    assert.match(out, /^decode, one agent \/ uncut +at least 0\.98 /m);
    assert.match(out, /^decode of the command of --baseline, tokens\/s +- +12\.500 /m);
    assert.match(out, /^decode beside the uncut model, long, quarter 4 \/ first +at least 0\.99 /m);
    assert.match(out, /^The journals grew from \d+ records to \d+, /m);
    assert.doesNotMatch(out, /sessions together/);
    await assertNothingLeft();
  });

  test('ends on Ctrl-C, and leaves nothing behind', async () => {
    const child = start(['--only', 'stages', '--layers', '2', '--rounds', '1000']);
    const closed = once(child, 'close');
    const areRingsStarting = (): boolean => readdirSync(home).some((name) => name.startsWith('p4-rings-'));
    await eventually(areRingsStarting, { what: 'the rings are starting', withinMs: 60_000 });
    child.kill('SIGINT');
    await closed;
    assert.equal(child.exitCode, 130);
    await assertNothingLeft();
  });

  test('a wrong option is refused before anything is made', async () => {
    const odd = await run(['--layers', '3']);
    assert.equal(odd.exit, 2);
    assert.match(odd.err, /--layers/);
    const part = await run(['--only', 'single,sesions']);
    assert.equal(part.exit, 2);
    assert.match(part.err, /sesions/);
    const unknown = await run(['--speed']);
    assert.equal(unknown.exit, 2);
    await assertNothingLeft();
  });
});

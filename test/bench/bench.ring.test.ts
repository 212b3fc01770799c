import assert from 'node:assert/strict';
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, suite, test } from 'node:test';

import { eventually } from '../fixture/eventually.ts';

const main = join(import.meta.dirname, 'main.js');
const home = mkdtempSync(join(tmpdir(), 'p4-bench-test-'));
const small = ['--rounds', '1', '--tokens', '4', '--prompt', '70', '--layers', '2'];

function start(args: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
  const child = spawn(process.execPath, ['--enable-source-maps', main, ...args], {
    // Sockets go to the folder for temporary files when there is no other for them.
    env: { ...process.env, TMPDIR: home, XDG_RUNTIME_DIR: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 120_000,
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

  test('prints one JSON object with figures of every arm, and leaves nothing behind', async () => {
    const { exit, out, err } = await run([...small, '--json']);
    assert.equal(exit, 0, err);
    const found = JSON.parse(out) as {
      readonly arms: Readonly<Record<string, { readonly decodeTokensPerSecond: { readonly median: number } }>>;
      readonly ratios: readonly { readonly name: string; readonly spread: { readonly runs: number } }[];
      readonly links: readonly unknown[];
      readonly memory: readonly { readonly name: string; readonly residentBytes: number }[];
      readonly verdicts: readonly { readonly figure: string; readonly isMet: boolean }[];
    };
    assert.deepEqual(Object.keys(found.arms), ['uncut', 'one agent', 'two agents']);
    for (const arm of Object.values(found.arms)) assert.ok(arm.decodeTokensPerSecond.median > 0);
    for (const { spread } of found.ratios) assert.equal(spread.runs, 1);
    assert.equal(found.links.length, 2, 'two stages under two agents have a link each way');
    // The uncut model, two agents, two stages for each ring, and the command itself.
    assert.equal(found.memory.length, 8);
    for (const { name, residentBytes } of found.memory) assert.ok(residentBytes > 1e6, name);
    assert.equal(found.verdicts.length, 6);
    await assertNothingLeft();
  });

  test('ends on Ctrl-C, and leaves nothing behind', async () => {
    const child = start([...small, '--rounds', '1000']);
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
    const unknown = await run(['--speed']);
    assert.equal(unknown.exit, 2);
    await assertNothingLeft();
  });
});

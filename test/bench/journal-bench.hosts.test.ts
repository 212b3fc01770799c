/** The journal's benchmark in its short form. It needs strace, which only this tier may ask for. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';

const main = join(import.meta.dirname, 'main.js');
const home = mkdtempSync(join(tmpdir(), 'p4-bench-test-'));

async function run(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<{ exit: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, ['--enable-source-maps', main, '--journal', ...args], {
    env: { ...process.env, TMPDIR: home, XDG_RUNTIME_DIR: '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 120_000,
    killSignal: 'SIGKILL',
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  await once(child, 'close');
  return { exit: child.exitCode, out, err };
}

interface Figures {
  readonly name: string;
  readonly records: { readonly before: number; readonly after: number };
  readonly perSecond: { readonly median: number; readonly runs: number };
}

interface Found {
  readonly decode: readonly Figures[];
  readonly appends: readonly Figures[];
  readonly ratios: readonly { readonly name: string }[];
  readonly trace: {
    readonly tokens: number;
    readonly calls: Readonly<Record<'writes' | 'syncs', number>> &
      Readonly<Record<'listings' | 'looks', readonly string[]>>;
  };
  readonly verdicts: readonly { readonly figure: string; readonly isMet: boolean }[];
}

const held = (of: readonly Figures[]): readonly number[] => of.map(({ records }) => Math.floor(records.before / 100));

suite('the benchmark of the journal', () => {
  const inMemory = mkdtempSync('/dev/shm/p4-bench-test-');
  after(() => {
    rmSync(home, { recursive: true, force: true });
    rmSync(inMemory, { recursive: true, force: true });
  });

  test('J3: fills journals, draws and appends with each, traces the agent, and leaves nothing behind', async () => {
    const { exit, out, err } = await run(['--quick', '--memory', inMemory, '--json']);
    assert.equal(exit, 0, err);
    const found = JSON.parse(out) as Found;
    // An empty journal on disk, a full one, an empty one in memory; each with a few records of its load.
    assert.deepEqual(held(found.decode), [0, 25, 0]);
    assert.deepEqual(held(found.appends), [0, 25, 0, 25]);
    for (const { name, records, perSecond } of [...found.decode, ...found.appends]) {
      assert.ok(perSecond.median > 0 && perSecond.runs === 1, name);
      assert.ok(records.after > records.before, `${name}: what was drawn or appended has come on top`);
    }
    assert.equal(found.ratios.length, 4);
    const { tokens, calls } = found.trace;
    assert.equal(tokens, 100);
    assert.ok(calls.writes > 0 && calls.syncs > 0, 'the trace has seen commits');
    assert.deepEqual([calls.listings, calls.looks], [[], []]);
    assert.equal(found.verdicts.length, 6);
    assert.deepEqual([readdirSync(home), readdirSync(inMemory)], [[], []]);
  });

  test('takes no folder for what it is not', async () => {
    const onDisk = await run(['--quick', '--memory', home]);
    assert.deepEqual([onDisk.exit, onDisk.out], [2, '']);
    assert.match(onDisk.err, /--memory[\s\S]*in memory/);
    const noDisk = await run(['--quick'], { TMPDIR: inMemory });
    assert.equal(noDisk.exit, 2);
    assert.match(noDisk.err, /TMPDIR[\s\S]*on a disk/);
    const odd = await run(['--records', '77']);
    assert.equal(odd.exit, 2);
    assert.match(odd.err, /--records/);
    assert.deepEqual([readdirSync(home), readdirSync(inMemory)], [[], []]);
  });
});

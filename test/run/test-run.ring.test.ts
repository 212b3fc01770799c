import assert from 'node:assert/strict';
import { afterEach, beforeEach, suite, test } from 'node:test';
import { PlantedCheckout } from './planted-checkout.ts';

suite('a test run', () => {
  let checkout: PlantedCheckout;
  beforeEach(() => {
    checkout = new PlantedCheckout();
  });
  afterEach(() => {
    checkout.remove();
  });

  const linesWith = (lines: readonly string[], words: string): readonly string[] =>
    lines.filter((line) => line.includes(words));

  test('counts tests that pass, in suites and below tests too', async () => {
    checkout.plant(
      'agent/a.test.ts',
      `import { suite, test } from 'node:test';
       test('one', (t) => t.diagnostic('measured 3 ms'));
       suite('of', () => { test('two', () => {}); });
       test('three', async (t) => { await t.test('four', () => {}); });`,
    );
    const { totals, lines } = await checkout.run({ tiers: ['unit'] });
    assert.deepEqual(totals, { passed: 4, failed: 0, skipped: 0 });
    assert.equal(linesWith(lines, 'ok    agent/a.test.ts  4 passed').length, 1);
    assert.equal(linesWith(lines, 'measured 3 ms').length, 1);
  });

  test('names what failed, why, and what the file wrote', async () => {
    checkout.plant(
      'agent/a.test.ts',
      `import { suite, test } from 'node:test';
       console.log('a word from the file');
       test('good', () => {});
       suite('of', () => { test('bad', () => { throw new Error('boom', { cause: new Error('its cause') }); }); });`,
    );
    const { totals, lines } = await checkout.run({ tiers: ['unit'] });
    assert.deepEqual(totals, { passed: 1, failed: 1, skipped: 0 });
    for (const words of ['failed: of > bad', 'boom', 'its cause', 'a word from the file']) {
      assert.ok(linesWith(lines, words).length > 0, words);
    }
    assert.deepEqual(linesWith(lines, 'node:internal'), []);
  });

  test('fails for a file that reports no test, or loses one, or was not built', async () => {
    const importing = "import { test } from 'node:test';";
    checkout.plant('agent/empty.test.ts', '');
    checkout.plant('agent/exits.test.ts', `${importing} test('a', async () => { await null; process.exit(0); });`);
    checkout.plant('agent/broken.test.ts', "import './gone.js';");
    checkout.plant('agent/unbuilt.test.ts', null);
    checkout.plant(
      'agent/late.test.ts',
      `${importing} test('a', () => { setTimeout(() => { throw new Error('late'); }, 5); });`,
    );
    const { totals, lines } = await checkout.run({ tiers: ['unit'] });
    assert.deepEqual(totals, { passed: 1, failed: 5, skipped: 0 });
    assert.equal(linesWith(lines, 'FAIL  agent/').length, 5);
    assert.ok(linesWith(lines, 'late').length > 1, 'the late error is shown');
  });

  test('fails for skipped tests in CI, and says so elsewhere', async () => {
    checkout.plant(
      'agent/a.test.ts',
      `import { test } from 'node:test';
       test('one', () => {}); test('two', { skip: 'no GPU' }, () => {}); test.todo('three');`,
    );
    const here = await checkout.run({ tiers: ['unit'] });
    assert.deepEqual(here.totals, { passed: 1, failed: 0, skipped: 2 });
    assert.equal(linesWith(here.lines, 'skipped: two: no GPU').length, 1);
    const ci = await checkout.run({ tiers: ['unit'], ci: 'true' });
    assert.deepEqual(ci.totals, { passed: 1, failed: 2, skipped: 2 });
  });

  test('fails for a tier that has no tests and must have some', async () => {
    checkout.plant('agent/a.test.ts', "import { test } from 'node:test'; test('one', () => {});");
    const { totals, lines } = await checkout.run({ tiers: ['unit', 'simulation', 'ring'] });
    assert.deepEqual(totals, { passed: 1, failed: 1, skipped: 0 });
    assert.equal(linesWith(lines, 'there must be').length, 1);
    assert.equal(linesWith(lines, 'there are no such tests yet').length, 1);
  });

  test('runs what the words select, and fails when they select nothing', async () => {
    checkout.plant('agent/a.test.ts', "import { test } from 'node:test'; test('one', () => {});");
    checkout.plant(
      'agent/b.test.ts',
      "import { test } from 'node:test'; test('two', () => { throw new Error('no'); });",
    );
    const some = await checkout.run({ tiers: ['unit', 'ring'], filters: ['agent/a'] });
    assert.deepEqual(some.totals, { passed: 1, failed: 0, skipped: 0 });
    const none = await checkout.run({ tiers: ['unit'], filters: ['nowhere'] });
    assert.deepEqual(none.totals, { passed: 0, failed: 1, skipped: 0 });
  });

  test('fails for processes and files left behind, and ends and removes them', async () => {
    checkout.plant(
      'test/a.ring.test.ts',
      `import { spawn } from 'node:child_process';
       import { writeFileSync } from 'node:fs';
       import { tmpdir } from 'node:os';
       import { test } from 'node:test';
       test('leaves', (t) => {
         writeFileSync(tmpdir() + '/left.sock', '');
         const script = 'setInterval(() => {}, 1000)';
         const child = spawn(process.execPath, ['-e', script], { detached: true, stdio: 'ignore' });
         child.unref();
         t.diagnostic('pid=' + child.pid + ' folder=' + tmpdir());
       });`,
    );
    const { totals, lines } = await checkout.run({ tiers: ['ring'] });
    assert.deepEqual(totals, { passed: 1, failed: 2, skipped: 0 });
    const pid = /pid=(\d+)/.exec(lines.join('\n'))?.[1] ?? '';
    assert.equal(linesWith(lines, `FAIL  left running: ${pid} ${process.execPath}`).length, 1, lines.join('\n'));
    assert.equal(linesWith(lines, 'FAIL  left in the temporary folder: left.sock').length, 1);
    await assertEnds(Number(pid));
  });
});

/** Waits until a process is gone; it was sent the signal before this is called. */
async function assertEnds(pid: number): Promise<void> {
  const endsAtMs = performance.now() + 5_000;
  while (isAlive(pid)) {
    assert.ok(performance.now() < endsAtMs, `${String(pid)} still runs`);
    await new Promise(setImmediate);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

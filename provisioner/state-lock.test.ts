import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { lockOwner, ownerText } from './lock-owner.ts';
import { stateLocks, whileLocked, type Takeover } from './state-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'p4-lock-'));
after(() => {
  rmSync(folder, { recursive: true });
});

const goneProcess = (): number => spawnSync('true').pid;
const namesLike = (start: string): readonly string[] =>
  readdirSync(folder).filter((name) => name === start || name.startsWith(`${start}.`));

test('actions on one path run one after the other, on two paths side by side', async () => {
  const path = join(folder, 'a');
  const events: string[] = [];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let held = (): void => undefined;
  const isHeld = new Promise<void>((resolve) => {
    held = resolve;
  });
  const first = whileLocked(path, async () => {
    events.push('first begins');
    held();
    await released;
    events.push('first ends');
  });
  await isHeld;
  const second = whileLocked(path, async () => {
    events.push('second');
    return Promise.resolve();
  });
  await whileLocked(join(folder, 'b'), async () => {
    events.push('other path');
    return Promise.resolve();
  });
  release();
  await Promise.all([first, second]);
  assert.deepEqual(events, ['first begins', 'other path', 'first ends', 'second']);
  assert(!existsSync(`${path}.lock`));
});

test('a lock is released when its action fails', async () => {
  const path = join(folder, 'c');
  await assert.rejects(
    whileLocked(path, () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await whileLocked(path, () => Promise.resolve(7)), 7);
});

test('a lock whose owner runs, or may run, is named with its owner, and left', async () => {
  const path = join(folder, 'd');
  const owner = await lockOwner('00');
  const elsewhere = { ...owner, process: { ...owner.process, place: 'another machine', pid: goneProcess() } };
  for (const [text, named] of [
    [JSON.stringify(owner), ownerText(owner)],
    [JSON.stringify(elsewhere), ownerText(elsewhere)],
    ['', 'unknown'],
    [String(goneProcess()), 'unknown'],
  ] as const) {
    writeFileSync(`${path}.lock`, text);
    await assert.rejects(
      whileLocked(path, () => assert.fail('the action does not run'), 30),
      { code: 'STATE_BUSY', facts: { lock: `${path}.lock`, owner: named } },
    );
    assert.equal(readFileSync(`${path}.lock`, 'utf8'), text);
  }
  assert.deepEqual(namesLike('d'), ['d.lock'], 'nothing else is left');
});

test('a lock whose process has ended is taken over, and that is told', async () => {
  const path = join(folder, 'e');
  const owner = await lockOwner('e0');
  const gone = { ...owner, process: { ...owner.process, pid: goneProcess() } };
  const reused = { ...owner, process: { ...owner.process, start: '1' } };
  const told: Takeover[] = [];
  const listen = (takeover: Takeover): void => {
    told.push(takeover);
  };
  stateLocks.on('takeover', listen);
  try {
    for (const left of [gone, reused]) {
      writeFileSync(`${path}.lock`, JSON.stringify(left));
      assert.equal(await whileLocked(path, () => Promise.resolve(7), 0), 7);
      assert.deepEqual(namesLike('e'), []);
    }
    assert.deepEqual(told, [
      { lock: `${path}.lock`, from: gone },
      { lock: `${path}.lock`, from: reused },
    ]);
  } finally {
    stateLocks.off('takeover', listen);
  }
});

test('who died while taking over is taken over from as well', async () => {
  const path = join(folder, 'g');
  const owner = await lockOwner('aa');
  const gone = { ...owner.process, pid: goneProcess() };
  writeFileSync(`${path}.lock`, JSON.stringify({ ...owner, process: gone }));
  writeFileSync(`${path}.lock.aa`, JSON.stringify({ ...owner, process: gone, token: 'bb' }));
  assert.equal(await whileLocked(path, () => Promise.resolve(7), 0), 7);
  assert.deepEqual(namesLike('g'), []);
});

test('of many processes that find one lock left behind, one at a time holds it', async () => {
  const path = join(folder, 'h');
  const owner = await lockOwner('cc');
  writeFileSync(`${path}.lock`, JSON.stringify({ ...owner, process: { ...owner.process, pid: goneProcess() } }));
  writeFileSync(path, '0');
  const program = `
    import { readFileSync, writeFileSync } from 'node:fs';
    import { setImmediate as turn } from 'node:timers/promises';
    const { whileLocked } = await import(${JSON.stringify(import.meta.resolve('./state-lock.js'))});
    for (let round = 0; round < 5; round += 1) await whileLocked(${JSON.stringify(path)}, async () => {
      const before = Number(readFileSync(${JSON.stringify(path)}, 'utf8'));
      await turn();
      writeFileSync(${JSON.stringify(path)}, String(before + 1));
    });`;
  const runs = Array.from({ length: 6 }, async () => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'inherit' });
    const [status] = (await once(child, 'exit')) as [number | null];
    return status;
  });
  assert.deepEqual(await Promise.all(runs), [0, 0, 0, 0, 0, 0]);
  assert.equal(readFileSync(path, 'utf8'), '30', 'no count is lost');
  assert.deepEqual(namesLike('h'), ['h']);
});

test('a folder that is not there cannot be locked in', async () => {
  const path = join(folder, 'none/x');
  await assert.rejects(
    whileLocked(path, () => assert.fail('the action does not run')),
    { code: 'STATE_UNWRITABLE' },
  );
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { whileLocked } from './state-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'p4-lock-'));
after(() => {
  rmSync(folder, { recursive: true });
});

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

test('a lock that stays is named with its owner, and left', async () => {
  const path = join(folder, 'd');
  const gone = spawnSync(process.execPath, ['--version']).pid;
  const owners = [
    [String(process.pid), `process ${process.pid}`],
    [String(gone), `process ${gone}, which is gone`],
    ['', 'unknown'],
  ] as const;
  for (const [text, owner] of owners) {
    writeFileSync(`${path}.lock`, text);
    await assert.rejects(
      whileLocked(path, () => assert.fail('the action does not run'), 30),
      { code: 'STATE_BUSY', facts: { lock: `${path}.lock`, owner } },
    );
    assert(existsSync(`${path}.lock`));
  }
});

test('a folder that is not there cannot be locked in', async () => {
  const path = join(folder, 'none/x');
  await assert.rejects(
    whileLocked(path, () => assert.fail('the action does not run')),
    { code: 'STATE_UNWRITABLE' },
  );
});

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { makeOwnerFolder, readIfThere, writeDurably } from './durable-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'p4-durable-'));
after(() => {
  rmSync(folder, { recursive: true });
});

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test('a file is replaced whole, with its exact mode, and nothing is left beside it', async () => {
  const home = join(folder, 'a');
  await makeOwnerFolder(home);
  const path = join(home, 'x.json');
  const umask = process.umask(0o077);
  try {
    await writeDurably({ path, text: 'one', mode: 0o644 });
  } finally {
    process.umask(umask);
  }
  assert.equal(modeOf(path), 0o644);
  await writeDurably({ path, text: 'two', mode: 0o600 });
  assert.equal(readFileSync(path, 'utf8'), 'two');
  assert.equal(modeOf(path), 0o600);
  assert.deepEqual(readdirSync(home), ['x.json']);
});

test('a write that fails leaves the former file and no other', async () => {
  const home = join(folder, 'b');
  await makeOwnerFolder(home);
  const path = join(home, 'taken');
  await makeOwnerFolder(path);
  writeFileSync(join(path, 'inside'), 'kept');
  await assert.rejects(writeDurably({ path, text: 'x', mode: 0o600 }), (error) => {
    assert(error instanceof P4Error);
    assert.equal(error.code, 'STATE_UNWRITABLE');
    assert.deepEqual(error.facts, { path, why: 'EISDIR' });
    return true;
  });
  assert.deepEqual(readdirSync(home), ['taken']);
  assert.equal(readFileSync(join(path, 'inside'), 'utf8'), 'kept');
});

test('folders are made for their owner only, down to the last', async () => {
  await makeOwnerFolder(join(folder, 'c/d/e'));
  for (const path of ['c', 'c/d', 'c/d/e']) assert.equal(modeOf(join(folder, path)), 0o700, path);
  await makeOwnerFolder(join(folder, 'c/d/e'));
});

test('a folder where a file stands cannot be made', async () => {
  writeFileSync(join(folder, 'file'), '');
  await assert.rejects(makeOwnerFolder(join(folder, 'file/below')), { code: 'STATE_UNWRITABLE' });
});

test('a file that is not there is told from one that cannot be read', async () => {
  assert.equal(await readIfThere(join(folder, 'none')), null);
  await assert.rejects(readIfThere(folder), (error) => {
    assert(error instanceof P4Error);
    assert.equal(error.code, 'STATE_UNREADABLE');
    assert.deepEqual(error.facts, { path: folder, why: 'EISDIR' });
    return true;
  });
});

import assert from 'node:assert/strict';
import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../test/fixture/temporary-folder.ts';
import { makeFolder } from './made-folder.ts';

test('a folder is made with those above it, and found again', async (t) => {
  const top = temporaryFolder(t);
  const path = join(top, 'a', 'b', 'c');
  assert.equal(await makeFolder(path, 0o700), join(top, 'a'));
  for (const folder of [path, join(top, 'a')]) assert.equal(statSync(folder).mode & 0o777, 0o700);
  chmodSync(path, 0o755);
  assert.equal(await makeFolder(`${path}/`, 0o700), undefined);
  assert.equal(statSync(path).mode & 0o777, 0o755, 'what is there stays as it is');
  assert.equal(await makeFolder(join(path, 'd')), join(path, 'd'));
});

test('several may make the same folder at once', async (t) => {
  const path = join(temporaryFolder(t), 'a', 'b', 'c');
  await Promise.all(Array.from({ length: 8 }, () => makeFolder(path)));
  assert.ok(statSync(path).isDirectory());
});

test('one that cannot be made is refused at once, also where the system says that what is above is missing', async (t) => {
  const code = (expected: string) => (error: unknown) =>
    error instanceof Error && 'code' in error && error.code === expected;
  await assert.rejects(makeFolder('/proc/p4-is-not-here'), code('ENOENT'));
  await assert.rejects(makeFolder('/proc/p4-is-not-here/nor/here'), code('ENOENT'));
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  await assert.rejects(makeFolder(file), code('EEXIST'));
  await assert.rejects(makeFolder(join(file, 'below')), code('ENOTDIR'));
});

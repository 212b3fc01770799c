import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { sliceId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { freeBytesFor, readSliceFolder, removeAbandoned, removeSlice, sliceBytesIn } from './slice-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'p4-slice-folder-'));
after(() => {
  rmSync(scratch, { recursive: true, force: true });
});

const one = sliceId('1'.repeat(64));
const two = sliceId('2'.repeat(64));

function folderWith(...names: readonly string[]): string {
  const folder = mkdtempSync(join(scratch, 'f-'));
  for (const name of names) writeFileSync(join(folder, name), name.slice(0, 3));
  return folder;
}

test('slices are told from everything else that lies there', async () => {
  const folder = folderWith(
    `${two}.gguf`,
    `${one}.gguf`,
    'notes.txt',
    'model.gguf',
    `${one}.gguf.bak`,
    `.${one}.local.receiving`,
  );
  mkdirSync(join(folder, `${'3'.repeat(64)}.gguf`));
  symlinkSync('/nowhere', join(folder, `${'4'.repeat(64)}.gguf`));
  utimesSync(join(folder, `${one}.gguf`), new Date(5_000), new Date(3_000));
  const { slices, unfinished } = await readSliceFolder(folder);
  assert.deepEqual(
    slices.map(({ id, bytes }) => [id, bytes]),
    [
      [one, 3],
      [two, 3],
    ],
  );
  assert.equal(slices[0]?.lastUsedMs, 5_000);
  assert.deepEqual(
    unfinished.map(({ path, bytes }) => [path, bytes]),
    [[join(folder, `.${one}.local.receiving`), 3]],
  );
});

test('a folder that is not there is empty, and has the room of the one above it', async () => {
  const absent = join(scratch, 'no', 'such');
  assert.deepEqual(await readSliceFolder(absent), { slices: [], unfinished: [] });
  assert.equal(await sliceBytesIn(absent, one), null);
  assert.ok((await freeBytesFor(absent)) > 0);
});

test('a slice is removed once, and nothing else with it', async () => {
  const folder = folderWith(`${one}.gguf`, `${two}.gguf`);
  assert.deepEqual([await removeSlice(folder, one), await removeSlice(folder, one)], [true, false]);
  assert.deepEqual(readdirSync(folder), [`${two}.gguf`]);
});

test('unfinished files go when nobody has touched them for long: a cut after an hour, an upload after a week', async () => {
  const names = [`.${one}.1.cutting`, `.${one}.local.receiving`, `${one}.gguf`, '.hidden'];
  const folder = folderWith(...names);
  const left = async (ageMs: number): Promise<readonly string[]> => {
    await removeAbandoned(folder, Date.now() + ageMs);
    return readdirSync(folder).sort();
  };
  assert.deepEqual(await left(0), [...names].sort());
  assert.deepEqual(
    await left(limits.abandonedCutMs + 60_000),
    [`.${one}.local.receiving`, '.hidden', `${one}.gguf`].sort(),
  );
  assert.deepEqual(await left(limits.abandonedUploadMs + 60_000), ['.hidden', `${one}.gguf`]);
});

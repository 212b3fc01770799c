import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, open, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { copyModel, splitModel, testModel } from './model-copy.ts';
import { openModel } from './model-file.ts';
import { hashModel } from './model-hash.ts';

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-model-hash-'));
});
after(async () => {
  await rm(folder, { recursive: true });
});

const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

/** Flips a bit of the last byte. With `keepTime` the file then looks like before. */
async function flipLastBit(path: string, keepTime: boolean): Promise<void> {
  const before = await stat(path);
  const bytes = await readFile(path);
  const handle = await open(path, 'r+');
  await handle.write(Buffer.from([(bytes.at(-1) ?? 0) ^ 1]), 0, 1, bytes.length - 1);
  await handle.close();
  const time = keepTime ? before.mtime : new Date(before.mtimeMs + 5000);
  await utimes(path, time, time);
}

describe("a model's hash", () => {
  it('is the sha256 of a single file, with progress to its end', async () => {
    const path = testModel('llama-dense');
    const model = await openModel(path);
    const seen: number[] = [];
    assert.equal(await hashModel(model, { onProgress: (bytes) => seen.push(bytes) }), sha256(await readFile(path)));
    assert.equal(seen.at(-1), model.bytes);
  });

  it('is the sha256 over those of the shards', async () => {
    const paths = await splitModel(await openModel(testModel('llama-dense')), join(folder, 'split'), 3);
    const hashes = await Promise.all(paths.map(async (path) => sha256(await readFile(path))));
    const expected = sha256(hashes.map((hash) => `${hash}\n`).join(''));
    assert.equal(await hashModel(await openModel(paths[1] ?? '')), expected);
  });

  it('is remembered for as long as the file looks the same, and no longer', async () => {
    const path = join(folder, 'model.gguf');
    const cachePath = join(folder, 'cache', 'hashes.json');
    await copyModel(await openModel(testModel('llama-dense')), path);
    const wholeSeconds = new Date(Math.floor(Date.now() / 1000) * 1000 - 60_000);
    await utimes(path, wholeSeconds, wholeSeconds);
    const first = await hashModel(await openModel(path), { cachePath });
    await flipLastBit(path, true);
    assert.equal(await hashModel(await openModel(path), { cachePath }), first, 'the file was not read again');
    await flipLastBit(path, false);
    await flipLastBit(path, false);
    const second = await hashModel(await openModel(path), { cachePath });
    assert.notEqual(second, first);
    assert.equal(second, sha256(await readFile(path)));
    await writeFile(cachePath, '{ "broken');
    assert.equal(await hashModel(await openModel(path), { cachePath }), second);
    assert.match(await readFile(cachePath, 'utf8'), new RegExp(second));
  });

  it('is not given for a file that is no longer the one that was opened, nor when cancelled', async () => {
    const path = join(folder, 'changing.gguf');
    await copyModel(await openModel(testModel('llama-dense')), path);
    const model = await openModel(path);
    const signal = AbortSignal.abort(new P4Error('CANCELLED'));
    await assert.rejects(hashModel(model, { signal }), { code: 'CANCELLED' });
    await flipLastBit(path, false);
    await assert.rejects(hashModel(model), { code: 'MODEL_CHANGED' });
  });
});

import assert from 'node:assert/strict';
import { copyFile, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { splitModel, tensorContent, testModel } from './model-copy.ts';
import { openModel } from './model-file.ts';
import { hashModel } from './model-hash.ts';
import { cutSlice } from './slice-cutter.ts';
import { planSlice } from './slice-plan.ts';

const whole = testModel('qwen2-dense');
const folders: string[] = [];
let folder = '';
let shards: readonly string[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-model-shard-'));
  folders.push(folder);
  shards = await splitModel(await openModel(whole), join(folder, 'model'), 4);
});
after(async () => {
  for (const made of folders) await rm(made, { recursive: true });
});

const isCode =
  (code: ErrorCode, found: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof P4Error, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, found);
    return true;
  };

const shardAt = (index: number): string => shards[index] ?? assert.fail('the shard exists');

/** Overwrites the value of a u32 key in a file. */
async function setNumber(path: string, key: string, value: number): Promise<void> {
  const at = (await readFile(path)).indexOf(key) + key.length + 4;
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  const handle = await open(path, 'r+');
  await handle.write(bytes, 0, 4, at);
  await handle.close();
}

describe('a split model', () => {
  it('is the same model from any of its shards, though the first holds metadata only', async () => {
    const expected = await openModel(whole);
    for (const path of shards) {
      const model = await openModel(path);
      assert.deepEqual(
        model.shards.map((shard) => shard.path),
        shards,
      );
      assert.equal(model.layers, expected.layers);
      assert.equal(model.metadata.has('split.count'), false);
      assert.deepEqual(
        model.tensors.map(({ name }) => name),
        expected.tensors.map(({ name }) => name),
      );
    }
    const model = await openModel(shardAt(0));
    for (const [index, tensor] of model.tensors.entries()) {
      const original = expected.tensors[index] ?? assert.fail('as many tensors');
      assert.deepEqual(await tensorContent(model, tensor), await tensorContent(expected, original), tensor.name);
    }
  });

  it('gives the slices of the unsplit model', async () => {
    const hash = 'a'.repeat(64);
    const range = { first: 3, last: 9 };
    const contents: Buffer[] = [];
    for (const path of [whole, shardAt(2)]) {
      const model = await openModel(path);
      const plan = planSlice(model, hash, range);
      const cut = await cutSlice({ model, plan, folder: join(folder, String(contents.length)) });
      contents.push(await readFile(cut.path));
    }
    assert.deepEqual(contents[0], contents[1]);
  });

  it('has a hash of its own, over its shards', async () => {
    const model = await openModel(shardAt(0));
    const hash = await hashModel(model);
    assert.notEqual(hash, await hashModel(await openModel(whole)));
    await setNumber(shardAt(3), 'general.architecture', 5);
    await assert.rejects(hashModel(model), isCode('MODEL_CHANGED', /00004-of-00004/));
  });

  it('is refused with the name of every missing shard', async () => {
    await rm(shardAt(1));
    await rm(shardAt(3));
    await assert.rejects(openModel(shardAt(2)), isCode('GGUF_SHARD_MISSING', /00002-of-00004.*00004-of-00004/));
  });

  it('is refused when its shards do not belong together', async () => {
    await setNumber(shardAt(2), 'split.no', 1);
    await assert.rejects(openModel(shardAt(0)), isCode('GGUF_SHARD_INVALID', /split.no 1[^]*split.no 2/));
    await setNumber(shardAt(2), 'split.no', 2);
    await setNumber(shardAt(1), 'split.count', 5);
    await assert.rejects(openModel(shardAt(0)), isCode('GGUF_SHARD_INVALID', /split.count 5/));
    await setNumber(shardAt(1), 'split.count', 4);
    await setNumber(shardAt(0), 'split.tensors.count', 7);
    await assert.rejects(openModel(shardAt(0)), isCode('GGUF_SHARD_INVALID', /split.tensors.count 7/));
    await setNumber(shardAt(0), 'split.tensors.count', (await openModel(whole)).tensors.length);
    await openModel(shardAt(0));
    await copyFile(shardAt(1), shardAt(2));
    await setNumber(shardAt(2), 'split.no', 2);
    await assert.rejects(openModel(shardAt(0)), isCode('GGUF_SHARD_INVALID', /which an earlier shard has/));
  });

  it('is refused when one shard goes by a name of its own', async () => {
    const renamed = join(folder, 'renamed.gguf');
    await copyFile(shardAt(0), renamed);
    await assert.rejects(openModel(renamed), isCode('GGUF_SHARD_INVALID', /split.count 4[^]*split.count 1/));
  });
});

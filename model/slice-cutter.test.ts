import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, open, readdir, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { f32, text, u32 } from './gguf-value.ts';
import { copyModel, tensorContent, testModel } from './model-copy.ts';
import { openModel } from './model-file.ts';
import { hashModel } from './model-hash.ts';
import { cutSlice } from './slice-cutter.ts';
import { readSliceIdentity } from './slice-identity.ts';
import { planSlice, sliceFileName } from './slice-plan.ts';
import { writeSparseModel } from './sparse-model.ts';

const run = promisify(execFile);
const hash = 'ab'.repeat(32);
const folders: string[] = [];
let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-slice-cutter-'));
  folders.push(folder);
});
after(async () => {
  for (const made of folders) await rm(made, { recursive: true });
});

const isCode =
  (code: ErrorCode, found = /./) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof P4Error, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, found);
    return true;
  };

const moduleUrl = (name: string): string => JSON.stringify(pathToFileURL(join(import.meta.dirname, `${name}.js`)).href);

/** Program text that cuts layers of a model in a process of its own. */
const cutProgram = (model: string, first: number, last: number): string => `
  const { openModel } = await import(${moduleUrl('model-file')});
  const { hashModel } = await import(${moduleUrl('model-hash')});
  const { planSlice } = await import(${moduleUrl('slice-plan')});
  const { cutSlice } = await import(${moduleUrl('slice-cutter')});
  const model = await openModel(${JSON.stringify(model)});
  const plan = planSlice(model, await hashModel(model), { first: ${first}, last: ${last} });
  const outcome = await cutSlice({ model, plan, folder: ${JSON.stringify(join(folder, 'slices'))} }).catch((error) => error);
  const code = outcome.code ?? 'done';
  console.log(JSON.stringify({ code, bytes: plan.bytes, residentBytes: process.resourceUsage().maxRSS * 1024 }));
`;

interface CutReport {
  readonly code: string;
  readonly bytes: number;
  readonly residentBytes: number;
}

async function cutInChild(program: string, shell: string | null = null): Promise<CutReport> {
  const command: [string, string[]] =
    shell === null
      ? [process.execPath, ['--input-type=module', '-e', program]]
      : ['/bin/bash', ['-c', `${shell}; exec "$0" --input-type=module -e "$1"`, process.execPath, program]];
  const { stdout } = await run(...command);
  return JSON.parse(stdout) as CutReport;
}

describe('cutting', () => {
  it('copies every tensor of the layers, and nothing else stays in the folder', async () => {
    const model = await openModel(testModel('gpt-oss-moe'));
    for (const [first, last] of [
      [0, 4],
      [5, 8],
      [9, 11],
      [0, 11],
    ] as const) {
      const plan = planSlice(model, hash, { first, last });
      const cut = await cutSlice({ model, plan, folder });
      assert.deepEqual(await readdir(folder), [sliceFileName(plan.id)]);
      assert.equal(cut.reused, false);
      assert.equal((await readFile(cut.path)).length, plan.bytes);
      const slice = await openModel(cut.path);
      assert.deepEqual([...slice.metadata], [...plan.metadata]);
      for (const tensor of slice.tensors) {
        const planned = plan.tensors.find(({ name }) => name === tensor.name);
        assert.ok(planned !== undefined);
        const { source } = planned;
        const expected =
          source.kind === 'zeros' ? Buffer.alloc(planned.bytes) : await tensorContent(model, source.tensor);
        assert.ok((await tensorContent(slice, tensor)).equals(expected), tensor.name);
      }
      await rm(cut.path);
    }
  });

  it('says what the slice is, to whoever reads it', async () => {
    const model = await openModel(testModel('granite-dense'));
    const modelHash = await hashModel(model);
    const plan = planSlice(model, modelHash, { first: 2, last: 6 });
    const { path } = await cutSlice({ model, plan, folder });
    const facts = { architecture: 'granite', hiddenWidth: 128, contextTokens: 256, hasTokenizer: false };
    assert.deepEqual(await readSliceIdentity(path), {
      ...facts,
      ...{ sliceId: plan.id, first: 2, last: 6, modelLayers: 12, modelHash },
      ...{ vocabularySize: 32, inputDivisor: 1, bytes: plan.bytes },
    });
    await assert.rejects(readSliceIdentity(testModel('granite-dense')), isCode('SLICE_INVALID', /cut by p4/));
    const slice = await openModel(path);
    for (const [key, value] of [
      ['p4.slice.last', u32(7)],
      ['p4.model.layers', u32(13)],
      ['p4.model.sha256', text('cd'.repeat(32))],
      ['p4.slice.first', null],
    ] as const) {
      const forged = join(folder, 'forged.gguf');
      await copyModel(slice, forged, { metadata: { [key]: value } });
      await assert.rejects(readSliceIdentity(forged), isCode('SLICE_INVALID'), key);
    }
    const divided = join(folder, 'divided.gguf');
    await copyModel(slice, divided, { metadata: { 'p4.slice.input_divisor': f32(Math.sqrt(128)) } });
    assert.equal((await readSliceIdentity(divided)).inputDivisor, Math.fround(Math.sqrt(128)));
  });

  it('reports its progress up to the last byte', async () => {
    const model = await openModel(testModel('llama-dense'));
    const plan = planSlice(model, hash, { first: 0, last: 5 });
    const seen: number[] = [];
    await cutSlice({ model, plan, folder, onProgress: (bytes) => seen.push(bytes) });
    assert.deepEqual(
      seen,
      [...seen].sort((a, b) => a - b),
    );
    assert.equal(seen.at(-1), plan.bytes);
  });
});

describe('a slice that is there already', () => {
  it('is kept when it is sound and cut anew when it is not', async () => {
    const model = await openModel(testModel('llama-dense'));
    const plan = planSlice(model, hash, { first: 3, last: 5 });
    const { path } = await cutSlice({ model, plan, folder });
    const content = await readFile(path);
    assert.equal((await cutSlice({ model, plan, folder })).reused, true);
    await truncate(path, 100);
    assert.equal((await cutSlice({ model, plan, folder })).reused, false);
    assert.deepEqual(await readFile(path), content);
    const handle = await open(path, 'r+');
    await handle.write(Buffer.from([0xff]), 0, 1, 40);
    await handle.close();
    assert.equal((await cutSlice({ model, plan, folder })).reused, false);
    assert.deepEqual(await readFile(path), content);
  });

  it('comes out whole when several cut it at once, in one process and in two', async () => {
    const path = testModel('llama-moe');
    const model = await openModel(path);
    const plan = planSlice(model, await hashModel(model), { first: 1, last: 9 });
    const slices = join(folder, 'slices');
    const cuts = Array.from({ length: 4 }, () => cutSlice({ model, plan, folder: slices }));
    const children = [cutInChild(cutProgram(path, 1, 9)), cutInChild(cutProgram(path, 1, 9))];
    for (const cut of await Promise.all(cuts)) assert.equal(cut.bytes, plan.bytes);
    for (const report of await Promise.all(children)) assert.equal(report.code, 'done');
    assert.deepEqual(await readdir(slices), [sliceFileName(plan.id)]);
    assert.equal((await readSliceIdentity(join(slices, sliceFileName(plan.id)))).bytes, plan.bytes);
  });

  it('is not confused with what a cutter left behind long ago', async () => {
    const model = await openModel(testModel('llama-dense'));
    const plan = planSlice(model, hash, { first: 3, last: 5 });
    const [old, young] = ['.old.1.aa.cutting', '.young.1.aa.cutting'];
    for (const name of [old, young]) await writeFile(join(folder, name), 'part of a slice');
    const longAgo = Date.now() / 1000 - 7200;
    await utimes(join(folder, old), longAgo, longAgo);
    await cutSlice({ model, plan, folder });
    assert.deepEqual((await readdir(folder)).sort(), [young, sliceFileName(plan.id)].sort());
  });
});

describe('a cut that fails', () => {
  it('leaves nothing when it is cancelled', async () => {
    const model = await openModel(testModel('llama-dense'));
    const plan = planSlice(model, hash, { first: 0, last: 5 });
    const controller = new AbortController();
    const reason = new P4Error('CANCELLED');
    const onProgress = (): void => {
      controller.abort(reason);
    };
    await assert.rejects(cutSlice({ model, plan, folder, onProgress, signal: controller.signal }), isCode('CANCELLED'));
    assert.deepEqual(await readdir(folder), []);
  });

  it('leaves nothing when the model is no longer the one that was opened', async () => {
    const path = join(folder, 'model.gguf');
    await copyModel(await openModel(testModel('llama-dense')), path);
    const model = await openModel(path);
    const plan = planSlice(model, hash, { first: 0, last: 5 });
    const slices = join(folder, 'slices');
    await utimes(path, 1, 1);
    await assert.rejects(cutSlice({ model, plan, folder: slices }), isCode('MODEL_CHANGED', /model.gguf/));
    await truncate(path, 50_000);
    await assert.rejects(cutSlice({ model, plan, folder: slices }), isCode('MODEL_CHANGED', /model.gguf/));
    await rm(path);
    await assert.rejects(cutSlice({ model, plan, folder: slices }), isCode('MODEL_FILE_UNREADABLE', /model.gguf/));
    assert.deepEqual(await readdir(slices), []);
  });

  it('says that the folder cannot be written', async () => {
    const model = await openModel(testModel('llama-dense'));
    const plan = planSlice(model, hash, { first: 0, last: 5 });
    const file = join(folder, 'file');
    await writeFile(file, '');
    await assert.rejects(
      cutSlice({ model, plan, folder: join(file, 'slices') }),
      isCode('SLICE_UNWRITABLE', /ENOTDIR/),
    );
  });

  it('says how much room is missing, before it writes or after', async () => {
    const path = join(folder, 'huge.gguf');
    await writeSparseModel(path, { layers: 8, layerBytes: 2 ** 40 });
    const model = await openModel(path);
    const plan = planSlice(model, hash, { first: 0, last: 7 });
    const slices = join(folder, 'slices');
    await assert.rejects(cutSlice({ model, plan, folder: slices }), isCode('SLICE_NO_SPACE', /neededBytes: 8796/));
    assert.deepEqual(await readdir(slices), []);
    const report = await cutInChild(cutProgram(testModel('llama-moe'), 0, 5), 'ulimit -f 500');
    assert.equal(report.code, 'SLICE_NO_SPACE');
    assert.deepEqual(await readdir(slices), []);
  });
});

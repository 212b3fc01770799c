/**
 * What a stage is estimated to hold, against what it holds once every session has filled its part of the KV cache.
 *
 * The estimate is to be within 10 % of that. Of a small model most is the process itself, whose size differs by some
 * megabytes from start to start: there `slackBytes` is allowed, where that is more.
 *
 * What a limit of its memory has to be at least is above what the system counts then, by little; and under that very limit a
 * stage loads and works.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test, type TestContext } from 'node:test';

import { estimateStageMemory, sliceMemory, stageDataBytes } from '../../model/memory-estimate.ts';
import { openModel } from '../../model/model-file.ts';
import { hashModel } from '../../model/model-hash.ts';
import { planSlice } from '../../model/slice-plan.ts';
import { present } from '../../protocol/assert.ts';
import { layersText } from '../../protocol/plan.ts';
import { storiesModel } from '../fixture/local-agents.ts';
import { measureStage, type MeasuredOrder } from '../fixture/measured-stage.ts';
import { makeBenchModel, smallSubjects } from './subjects.ts';

const slackBytes = 8e6;
/** How much a limit may ask for beyond what is counted in the end: V8's heap comes and goes. */
const spareBytes = 40e6;
const scratch = mkdtempSync(join(tmpdir(), 'p4-memory-'));
after(() => {
  rmSync(scratch, { recursive: true, force: true });
});

type Shape = Pick<MeasuredOrder, 'layers' | 'contextTokens' | 'sessions' | 'keptPrefixes' | 'kv' | 'decode'>;

async function compare(t: TestContext, path: string, shape: Shape): Promise<void> {
  const model = await openModel(path);
  const folder = mkdtempSync(join(scratch, 'stage-'));
  const { slice, load, worked } = await measureStage({ model, modelHash: await hashModel(model), folder, ...shape });
  const estimate = estimateStageMemory(sliceMemory(model, slice), { plan: load });
  const off = estimate.bytes - worked.bytes;
  const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  const told = `layers ${layersText(shape.layers)}: estimated ${megabytes(estimate.bytes)}, held ${megabytes(worked.bytes)}`;
  t.diagnostic(told);
  assert.ok(Math.abs(off) <= Math.max(0.1 * worked.bytes, slackBytes), told);
  const limitBytes = stageDataBytes(sliceMemory(model, slice), { plan: load, threads: load.threads });
  const counted = `layers ${layersText(shape.layers)}: limit ${megabytes(limitBytes)}, counted ${megabytes(worked.dataBytes)}`;
  t.diagnostic(counted);
  assert.ok(limitBytes >= worked.dataBytes && limitBytes <= worked.dataBytes + spareBytes, counted);
}

const small = { contextTokens: 512, sessions: 2, keptPrefixes: 8 } as const;

test('the stories model: head, middle and tail hold what was estimated', async (t) => {
  await compare(t, storiesModel, { layers: { first: 0, last: 7 }, ...small });
  await compare(t, storiesModel, { layers: { first: 2, last: 5 }, ...small, decode: 'exact' });
  const wide = { contextTokens: 512, sessions: 8, keptPrefixes: 0, kv: { keys: 'f32', values: 'q8_0' } } as const;
  await compare(t, storiesModel, { layers: { first: 4, last: 7 }, ...wide });
});

// More threads than a machine has free cores wait for one another at every step: they get little to do.
for (const { threads, filled, name } of [
  { threads: 1, filled: 32, name: 'one thread computes' },
  { threads: 3, filled: 1, name: 'three threads compute' },
])
  test(`a stage works under the least limit that a load takes for enough, where ${name}`, async () => {
    const model = await openModel(storiesModel);
    const modelHash = await hashModel(model);
    const layers = { first: 4, last: 7 };
    const order = {
      ...{ model, modelHash, layers, threads },
      contextTokens: 256,
      sessions: 32,
      keptPrefixes: 0,
      filled,
    };
    const memory = sliceMemory(model, planSlice(model, modelHash, layers));
    const plan = { ...order, kv: { keys: 'f16', values: 'f16' } } as const;
    const limitBytes = stageDataBytes(memory, { plan, threads });
    const folder = mkdtempSync(join(scratch, 'stage-'));
    const { worked } = await measureStage({ ...order, folder, limitBytes });
    assert.ok(worked.dataBytes <= limitBytes);
    const { kvBytes } = estimateStageMemory(memory, { plan });
    const tooSmall = {
      ...order,
      folder: mkdtempSync(join(scratch, 'stage-')),
      limitBytes: limitBytes - spareBytes - kvBytes,
    };
    await assert.rejects(measureStage(tooSmall), { code: 'ENGINE_CONTEXT_REFUSED' });
  });

for (const name of ['gemma3-dense', 'gpt-oss-moe', 'llama-moe'])
  test(`${name}: head and tail hold what was estimated`, async (t) => {
    const found = (await smallSubjects()).find((subject) => subject.name === name);
    const { path } = present(found, 'the model is there');
    await compare(t, path, { layers: { first: 0, last: 5 }, ...small });
    await compare(t, path, { layers: { first: 6, last: 11 }, contextTokens: 64, sessions: 32, keptPrefixes: 8 });
  });

test('a model of 200 M parameters: head, middle and tail hold what was estimated', async (t) => {
  const model = await makeBenchModel();
  const { path } = model;
  try {
    await compare(t, path, { layers: { first: 0, last: 7 }, ...small });
    await compare(t, path, { layers: { first: 4, last: 11 }, contextTokens: 320, sessions: 4, keptPrefixes: 64 });
    await compare(t, path, { layers: { first: 12, last: 15 }, ...small });
  } finally {
    await model.remove();
  }
});

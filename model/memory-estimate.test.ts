import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { estimateStageMemory, kvCells, sliceMemory, stageDataBytes, type SliceMemory } from './memory-estimate.ts';
import { openModel } from './model-file.ts';
import { planSlice } from './slice-plan.ts';

const stories = join(import.meta.dirname, '../../plans/stories.gguf');
const plan = { contextTokens: 512, sessions: 2, keptPrefixes: 2, kv: { keys: 'f16', values: 'f16' } } as const;

async function memoryOf(first: number, last: number): Promise<SliceMemory> {
  const model = await openModel(stories);
  return sliceMemory(model, planSlice(model, 'a'.repeat(64), { first, last }));
}

test('cells are those of all sessions and the reserved one, in multiples of 256', () => {
  assert.equal(kvCells({ ...plan, contextTokens: 255, sessions: 1 }), 256);
  assert.equal(kvCells({ ...plan, contextTokens: 256, sessions: 1 }), 512);
  assert.equal(kvCells(plan), 1280);
});

test('a slice says what its memory follows from', async () => {
  const { weightBytes, headerBytes, tensors, ...middle } = await memoryOf(2, 5);
  assert.deepEqual(middle, {
    ...{ tokens: 0, layers: 4, keyElements: 4 * 96, valueElements: 4 * 96, hiddenWidth: 192, innerWidth: 512 },
    ...{ vocabularySize: 32, keepsOrder: false, isHead: false, isTail: false },
  });
  assert.ok(weightBytes > 3e6 && headerBytes < 20e3 && tensors > 4 * 9);
  const tail = await memoryOf(6, 7);
  assert.deepEqual([tail.tokens, tail.vocabularySize, tail.isHead, tail.isTail], [1024, 1024, false, true]);
});

test('keys and values are counted by their types', async () => {
  const slice = await memoryOf(0, 7);
  const kv = (keys: 'f32' | 'f16' | 'q8_0', values: 'f32' | 'q4_0'): number =>
    estimateStageMemory(slice, { plan: { ...plan, kv: { keys, values } } }).kvBytes;
  const elements = 1280 * 8 * 96;
  assert.equal(kv('f32', 'f32'), elements * 8);
  assert.equal(kv('f16', 'f32'), elements * 6);
  assert.equal(kv('q8_0', 'q4_0'), (elements / 32) * (34 + 18));
});

test('the parts add up, and more of anything needs more', async () => {
  const slice = await memoryOf(0, 3);
  const estimate = estimateStageMemory(slice, { plan });
  const { weightBytes, kvBytes, computeBytes, processBytes, bytes } = estimate;
  assert.equal(bytes, weightBytes + kvBytes + computeBytes + processBytes);
  assert.equal(weightBytes, slice.weightBytes);
  const more = (change: Partial<SliceMemory>): number => estimateStageMemory({ ...slice, ...change }, { plan }).bytes;
  for (const change of [
    { weightBytes: slice.weightBytes + 1e6 },
    { keyElements: slice.keyElements * 2 },
    { hiddenWidth: 4096 },
    { vocabularySize: 150_000 },
    { tokens: 150_000 },
    { keepsOrder: true },
  ])
    assert.ok(more(change) > bytes, JSON.stringify(change));
});

test('a limit has to hold what is held, and what is only set aside: stacks, and tables for every tensor', async () => {
  const slice = await memoryOf(0, 3);
  const wanted = (change: Partial<SliceMemory> = {}, threads = 1): number =>
    stageDataBytes({ ...slice, ...change }, { plan, threads });
  assert.equal(wanted({}, 5) - wanted(), 4 * 8 * 2 ** 20);
  assert.equal(wanted({ weightBytes: slice.weightBytes + 1e6 }) - wanted(), 1e6);
  assert.equal(wanted({ tensors: 128 }), wanted(), 'a graph has at least 1024 nodes');
  assert.equal(wanted({ tensors: 1000 }) - wanted({ tensors: 500 }), 4000 * 30 * 2 * 336);
  assert.ok(wanted() > estimateStageMemory(slice, { plan }).bytes + 70e6);
});

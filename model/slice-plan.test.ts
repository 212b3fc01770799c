import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { architectureKey } from './architecture.ts';
import { elementsOf, f32, numberOf, textOf, u32, unsignedOf, valueAt } from './gguf-value.ts';
import { sliceFault } from './layer-cut.ts';
import { copyModel, testModel, type ModelChanges } from './model-copy.ts';
import { openModel, type ModelFile } from './model-file.ts';
import { layerOf } from './model-soundness.ts';
import { planSlice, slicePlace, type SlicePlan } from './slice-plan.ts';

const hash = '0123456789abcdef'.repeat(4);
const proven = [
  ...['llama-dense', 'llama-moe', 'qwen2-dense', 'qwen3-dense', 'qwen3moe-moe'],
  ...['mistral3-dense', 'phi3-dense', 'granite-dense', 'gemma3-dense', 'gpt-oss-moe'],
];

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-slice-plan-'));
});
after(async () => {
  await rm(folder, { recursive: true });
});

async function changed(name: string, changes: ModelChanges): Promise<ModelFile> {
  const path = join(folder, 'changed.gguf');
  await copyModel(await openModel(testModel(name)), path, changes);
  return openModel(path);
}

const plan = (model: ModelFile, first: number, last: number): SlicePlan => planSlice(model, hash, { first, last });

/** Name of the model's tensor whose bytes a slice's tensor has; `zeros` or `none` otherwise. */
function sourceOf({ tensors }: SlicePlan, name: string): string {
  const tensor = tensors.find((candidate) => candidate.name === name);
  if (tensor === undefined) return 'none';
  return tensor.source.kind === 'zeros'
    ? `zeros ${tensor.type.name} ${tensor.shape.join('x')}`
    : tensor.source.tensor.name;
}

describe('every legal slice of every proven architecture', () => {
  for (const name of proven) {
    it(`of ${name} has its layers renumbered, its lists cut and its metadata kept`, async () => {
      const model = await openModel(testModel(name));
      let slices = 0;
      for (let first = 0; first < model.layers; first += 1) {
        for (let last = first; last < model.layers; last += 1) {
          if (sliceFault(model, { first, last }) !== null) continue;
          checkSlice(model, plan(model, first, last));
          slices += 1;
        }
      }
      assert.equal(slices, ['gemma3-dense', 'gpt-oss-moe'].includes(name) ? 72 : 78);
    });
  }
});

function checkSlice(model: ModelFile, slice: SlicePlan): void {
  const { first, last } = slice.range;
  const count = last - first + 1;
  const layers = new Set<number>();
  for (const { name, source } of slice.tensors) {
    const layer = layerOf(name);
    if (layer === null) continue;
    layers.add(layer);
    assert.ok(source.kind === 'model');
    assert.equal(source.tensor.name, name.replace(`blk.${layer}.`, `blk.${layer + first}.`));
  }
  assert.deepEqual(
    [...layers].sort((a, b) => a - b),
    Array.from({ length: count }, (_, layer) => layer),
  );
  const expected = model.tensors.filter(({ name }) => {
    const layer = layerOf(name);
    return layer !== null && layer >= first && layer <= last;
  });
  assert.equal(slice.tensors.filter(({ name }) => layerOf(name) !== null).length, expected.length);
  for (const name of ['rope_freqs.weight', 'rope_factors_long.weight', 'output_norm.weight']) {
    assert.equal(sourceOf(slice, name), model.tensors.some((tensor) => tensor.name === name) ? name : 'none');
  }
  assert.equal(unsignedOf(slice.metadata.get(architectureKey(model, 'block_count'))), count);
  const listKey = architectureKey(model, 'swiglu_clamp_exp');
  assert.equal(elementsOf(valueAt(slice.metadata, listKey)).length, count);
  for (const [key, value] of model.metadata) {
    if (key.startsWith('general.') || (key.startsWith(architectureKey(model, '')) && value.kind === 'single')) {
      const mayDiffer = ['block_count', 'vocab_size', 'embedding_scale', 'leading_dense_block_count'];
      if (mayDiffer.some((suffix) => key === architectureKey(model, suffix))) continue;
      assert.deepEqual(slice.metadata.get(key), value, key);
    }
  }
}

describe('a slice', () => {
  it('has the parts of the vocabulary that its place in the ring needs', async () => {
    const model = await openModel(testModel('qwen2-dense'));
    const places = {
      whole: plan(model, 0, 11),
      first: plan(model, 0, 3),
      middle: plan(model, 4, 7),
      last: plan(model, 8, 11),
    };
    for (const [place, slice] of Object.entries(places)) {
      assert.equal(slicePlace(model, slice.range), place);
      const tokenizer = place === 'middle' ? 'no_vocab' : 'test';
      assert.equal(textOf(slice.metadata.get('tokenizer.ggml.model')), tokenizer);
      assert.equal(slice.metadata.has('tokenizer.ggml.tokens'), place !== 'middle');
    }
    const embedding = (slice: SlicePlan): string => sourceOf(slice, 'token_embd.weight');
    assert.equal(embedding(places.whole), 'token_embd.weight');
    assert.equal(embedding(places.first), 'token_embd.weight');
    assert.equal(embedding(places.middle), 'zeros F32 128x32');
    assert.equal(embedding(places.last), 'output.weight');
    assert.equal(unsignedOf(places.middle.metadata.get('qwen2.vocab_size')), 32);
    assert.equal(unsignedOf(places.last.metadata.get('qwen2.vocab_size')), 128);
    assert.equal(sourceOf(places.whole, 'output.weight'), 'output.weight');
    for (const slice of [places.first, places.middle, places.last]) {
      assert.equal(sourceOf(slice, 'output.weight'), 'none');
    }
    const bias = Object.values(places).map((slice) => sourceOf(slice, 'output.bias'));
    assert.deepEqual(bias, ['output.bias', 'none', 'none', 'output.bias']);
  });

  it('of a tied model carries the embedding first and last', async () => {
    const model = await changed('qwen3-dense', { withoutTensors: ['output.weight'] });
    assert.equal(sourceOf(plan(model, 0, 5), 'token_embd.weight'), 'token_embd.weight');
    assert.equal(sourceOf(plan(model, 6, 11), 'token_embd.weight'), 'token_embd.weight');
    assert.equal(sourceOf(plan(model, 2, 5), 'token_embd.weight'), 'zeros F32 128x32');
  });

  it('of gpt-oss has an output matrix everywhere, of zeros where it is not used', async () => {
    const model = await openModel(testModel('gpt-oss-moe'));
    const matrices = ([first, last]: readonly [number, number]): string[] =>
      ['token_embd.weight', 'output.weight'].map((name) => sourceOf(plan(model, first, last), name));
    assert.deepEqual(matrices([0, 4]), ['token_embd.weight', 'zeros Q5_0 128x128']);
    assert.deepEqual(matrices([5, 8]), ['zeros F32 128x32', 'zeros F32 128x32']);
    assert.deepEqual(matrices([9, 11]), ['zeros Q5_0 128x128', 'output.weight']);
    assert.deepEqual(matrices([0, 11]), ['token_embd.weight', 'output.weight']);
  });

  it('states which of its layers have a sliding window, so that its phase does not matter', async () => {
    const model = await changed('gemma3-dense', { metadata: { 'gemma3.attention.sliding_window_pattern': null } });
    const windows = (slice: SlicePlan): unknown =>
      elementsOf(valueAt(slice.metadata, 'gemma3.attention.sliding_window_pattern'));
    assert.deepEqual(windows(plan(model, 4, 8)), [true, false, true, true, true]);
    assert.equal(plan(model, 0, 11).metadata.has('gemma3.attention.sliding_window_pattern'), false);
  });

  it('of granite scales its input only where that is the embedding', async () => {
    const model = await changed('granite-dense', { metadata: { 'granite.embedding_scale': f32(12) } });
    const scale = (first: number, last: number): number | null =>
      numberOf(plan(model, first, last).metadata.get('granite.embedding_scale'));
    assert.deepEqual([scale(0, 11), scale(0, 3), scale(4, 7), scale(8, 11)], [12, 12, 1, 1]);
  });

  it('moves the count of leading dense layers', async () => {
    const model = await changed('llama-dense', { metadata: { 'llama.leading_dense_block_count': u32(5) } });
    const leading = (first: number, last: number): number | null =>
      unsignedOf(plan(model, first, last).metadata.get('llama.leading_dense_block_count'));
    assert.deepEqual([leading(0, 2), leading(3, 7), leading(6, 11), leading(0, 11)], [3, 2, 0, 5]);
  });

  it('cuts a list nobody knows, and leaves alone what only looks like one', async () => {
    const list = { kind: 'array', type: 'i32', length: 12, bytes: Buffer.concat(layerNumbers) } as const;
    const model = await changed('llama-dense', {
      metadata: { 'llama.something_new': list, 'other.list': list, 'llama.rope.dimension_sections': list },
    });
    const { metadata } = plan(model, 3, 5);
    assert.deepEqual(elementsOf(valueAt(metadata, 'llama.something_new')), [3, 4, 5]);
    assert.equal(elementsOf(valueAt(metadata, 'other.list')).length, 12);
    assert.equal(elementsOf(valueAt(metadata, 'llama.rope.dimension_sections')).length, 12);
  });

  it('has an id that depends on model, layers and nothing else', async () => {
    const model = await openModel(testModel('llama-dense'));
    const elsewhere = await changed('llama-dense', {});
    assert.equal(plan(model, 2, 5).id, plan(elsewhere, 2, 5).id);
    const others = [
      plan(model, 2, 6).id,
      plan(model, 1, 5).id,
      planSlice(model, 'f'.repeat(64), { first: 2, last: 5 }).id,
    ];
    assert.equal(new Set([plan(model, 2, 5).id, ...others]).size, 4);
  });

  it('is not cut from a slice, nor from a model with tensors nobody knows', async () => {
    const model = await openModel(testModel('llama-dense'));
    const slice = { ...model, metadata: plan(model, 0, 11).metadata };
    assert.throws(
      () => plan(slice, 0, 3),
      (error) => error instanceof P4Error && error.code === 'MODEL_INVALID',
    );
    const [tensor] = model.tensors;
    assert.ok(tensor !== undefined);
    const strange = { ...model, tensors: [...model.tensors, { ...tensor, name: 'per_layer_token_embd.weight' }] };
    assert.throws(() => plan(strange, 0, 3), /per_layer_token_embd/);
    assert.equal(sourceOf(plan(strange, 0, 11), 'per_layer_token_embd.weight'), 'per_layer_token_embd.weight');
  });
});

const layerNumbers = Array.from({ length: 12 }, (_, layer) => u32(layer).bytes);

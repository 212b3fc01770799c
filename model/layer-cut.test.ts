import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { u32, type GgufValue } from './gguf-value.ts';
import { legalCuts, requireLegalSlice, sliceFault } from './layer-cut.ts';
import { copyModel, testModel } from './model-copy.ts';
import { openModel, type ModelFile } from './model-file.ts';

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-layer-cut-'));
});
after(async () => {
  await rm(folder, { recursive: true });
});

async function changed(name: string, metadata: Readonly<Record<string, GgufValue | null>>): Promise<ModelFile> {
  const path = join(folder, 'changed.gguf');
  await copyModel(await openModel(testModel(name)), path, { metadata });
  return openModel(path);
}

const layersTo = (last: number): number[] => Array.from({ length: last + 1 }, (_, layer) => layer);

describe('legal cuts', () => {
  for (const name of ['llama-dense', 'llama-moe', 'qwen2-dense', 'qwen3-dense', 'qwen3moe-moe', 'mistral3-dense']) {
    it(`of ${name} are everywhere`, async () => {
      assert.deepEqual(legalCuts(await openModel(testModel(name))), layersTo(10));
    });
  }
  for (const name of ['phi3-dense', 'granite-dense']) {
    it(`of ${name} are everywhere`, async () => {
      assert.deepEqual(legalCuts(await openModel(testModel(name))), layersTo(10));
    });
  }
  for (const name of ['gemma3-dense', 'gpt-oss-moe']) {
    it(`of ${name} leave a sliding-window layer in each slice`, async () => {
      const model = await openModel(testModel(name));
      assert.deepEqual(legalCuts(model), layersTo(9));
      assert.equal(sliceFault(model, { first: 4, last: 4 }), null);
      assert.match(sliceFault(model, { first: 5, last: 5 }) ?? '', /sliding window/);
      assert.equal(sliceFault(model, { first: 5, last: 6 }), null);
      assert.match(sliceFault(model, { first: 11, last: 11 }) ?? '', /sliding window/);
    });
  }

  it('of a model without a list of windows follow its architecture', async () => {
    const key = 'attention.sliding_window_pattern';
    const gemma3 = await changed('gemma3-dense', { [`gemma3.${key}`]: null });
    const illegal = (model: ModelFile): number[] =>
      layersTo(11).filter((layer) => sliceFault(model, { first: layer, last: layer }) !== null);
    assert.deepEqual(illegal(gemma3), [5, 11]);
    assert.deepEqual(illegal(await changed('gemma3-dense', { [`gemma3.${key}`]: u32(4) })), [3, 7, 11]);
    assert.deepEqual(illegal(await changed('gpt-oss-moe', { [`gpt-oss.${key}`]: null })), [1, 3, 5, 7, 9, 11]);
    const windowless = await changed('gemma3-dense', { 'gemma3.attention.sliding_window': u32(0) });
    assert.deepEqual(illegal(windowless), []);
  });

  it('are none where llama.cpp derives a factor from the number of layers', async () => {
    const model = await openModel(testModel('gemma3-dense'));
    const of62 = {
      ...model,
      layers: 62,
      metadata: new Map([...model.metadata, ['gemma3.attention.sliding_window_pattern', u32(6)]]),
    };
    assert.equal(legalCuts(of62).length, 61, 'heads of width/heads elements are scaled alike');
    const metadata = new Map([...of62.metadata, ['gemma3.attention.key_length', u32(32)] as const]);
    assert.deepEqual(legalCuts({ ...of62, metadata }), []);
    assert.equal(sliceFault({ ...of62, metadata }, { first: 0, last: 61 }), null, 'the whole model is itself');
    const of80 = { ...of62, metadata, layers: 80 };
    assert.match(sliceFault(of80, { first: 3, last: 64 }) ?? '', /62 layers/);
    assert.equal(sliceFault(of80, { first: 3, last: 63 }), null);
  });

  it('are none where later layers need what earlier ones had', async () => {
    const predicting = await changed('llama-dense', { 'llama.nextn_predict_layers': u32(1) });
    assert.deepEqual(legalCuts(predicting), []);
    const stacked = await changed('granite-dense', { 'granite.deepstack_mapping': u32(0) });
    assert.match(sliceFault(stacked, { first: 0, last: 3 }) ?? '', /image features/);
  });
});

describe('an illegal slice', () => {
  it('is refused with its layers, the reason and the nearest legal ones', async () => {
    const model = await openModel(testModel('gemma3-dense'));
    assert.throws(
      () => {
        requireLegalSlice(model, { first: 5, last: 5 });
      },
      (error: unknown) => {
        assert.ok(error instanceof P4Error);
        assert.equal(error.code, 'MODEL_CUT_ILLEGAL');
        assert.equal(error.facts['layers'], '5-5');
        assert.deepEqual(error.facts['nearest'], ['4-5', '5-6']);
        assert.deepEqual(error.facts['cutsAfter'], layersTo(9).map(String));
        return true;
      },
    );
  });

  it('is one whose layers the model does not have', async () => {
    const model = await openModel(testModel('llama-dense'));
    for (const [first, last] of [
      [-1, 3],
      [4, 3],
      [0, 12],
      [0.5, 3],
    ] as const) {
      assert.match(sliceFault(model, { first, last }) ?? '', /layers 0-11/);
      assert.throws(() => {
        requireLegalSlice(model, { first, last });
      }, P4Error);
    }
  });
});

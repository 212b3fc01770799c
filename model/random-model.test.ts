import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { tensorContent } from './model-copy.ts';
import { openModel, type ModelFile } from './model-file.ts';
import { benchModelShape, writeRandomModel, type RandomModelShape } from './random-model.ts';
import { float16 } from './random-weights.ts';

const shape: RandomModelShape = {
  ...{ layers: 2, hiddenWidth: 256, heads: 4, kvHeads: 2, feedForwardWidth: 512, vocabularySize: 320 },
  ...{ contextTokens: 128, weightType: 'Q8_0', seed: 7 },
};

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-random-model-'));
});
after(async () => {
  await rm(folder, { recursive: true });
});

async function written(changes: Partial<RandomModelShape>): Promise<{ hash: string; model: ModelFile }> {
  const path = join(folder, 'model.gguf');
  const hash = await writeRandomModel(path, { ...shape, ...changes });
  return { hash, model: await openModel(path) };
}

async function weightsOf(model: ModelFile, name: string): Promise<Float64Array> {
  const tensor = model.tensors.find((candidate) => candidate.name === name);
  assert.ok(tensor !== undefined);
  const bytes = await tensorContent(model, tensor);
  const count = tensor.shape.reduce((product, size) => product * size, 1);
  switch (tensor.type.name) {
    case 'F32':
      return Float64Array.from({ length: count }, (_, index) => bytes.readFloatLE(index * 4));
    case 'F16':
      return Float64Array.from({ length: count }, (_, index) => fromFloat16(bytes.readUInt16LE(index * 2)));
    case 'Q4_0':
      // The first half of a block's elements are the low halves of its bytes.
      return Float64Array.from({ length: count }, (_, index) => {
        const block = Math.floor(index / 32) * 18;
        const byte = bytes.readUInt8(block + 2 + (index % 16));
        return fromFloat16(bytes.readUInt16LE(block)) * ((index % 32 < 16 ? byte & 15 : byte >> 4) - 8);
      });
    default:
      return Float64Array.from({ length: count }, (_, index) => {
        const block = Math.floor(index / 32) * 34;
        return fromFloat16(bytes.readUInt16LE(block)) * bytes.readInt8(block + 2 + (index % 32));
      });
  }
}

function fromFloat16(bits: number): number {
  const exponent = (bits >> 10) & 31;
  return (bits & 0x8000 ? -1 : 1) * 2 ** (exponent - 15) * (1 + (bits & 1023) / 1024) * (exponent === 0 ? 0 : 1);
}

describe('a random model', () => {
  it('is the same for the same seed, and another for another', async () => {
    const first = await written({});
    assert.equal(first.hash, (await written({})).hash);
    assert.notEqual(first.hash, (await written({ seed: 8 })).hash);
    assert.deepEqual(await readdir(folder), ['model.gguf']);
    await written({});
    const bytes = await readFile(join(folder, 'model.gguf'));
    assert.equal(createHash('sha256').update(bytes).digest('hex'), first.hash);
  });

  for (const weightType of ['F32', 'F16', 'Q8_0', 'Q4_0'] as const) {
    it(`of ${weightType} has normal weights of deviation 1/sqrt(inputs)`, async () => {
      const { model } = await written({ weightType });
      assert.equal(model.layers, 2);
      assert.equal(model.hasTokenizer, false);
      for (const [name, deviation] of [
        ['blk.1.ffn_down.weight', 1 / Math.sqrt(512)],
        ['output.weight', 1 / 16],
        ['token_embd.weight', 1],
      ] as const) {
        const weights = await weightsOf(model, name);
        const mean = weights.reduce((sum, weight) => sum + weight, 0) / weights.length;
        const variance = weights.reduce((sum, weight) => sum + (weight - mean) ** 2, 0) / weights.length;
        assert.ok(Math.abs(mean) < deviation * 0.02, `${name}: mean ${mean}`);
        assert.ok(Math.abs(Math.sqrt(variance) / deviation - 1) < 0.02, `${name}: variance ${variance}`);
        const within = weights.filter((weight) => Math.abs(weight) < deviation).length / weights.length;
        // Sixteen steps: the one nearest to a deviation lies beyond it.
        assert.ok(
          Math.abs(within - 0.6827) < (weightType === 'Q4_0' ? 0.1 : 0.02),
          `${name}: ${within} within one deviation`,
        );
      }
      assert.ok((await weightsOf(model, 'blk.0.attn_norm.weight')).every((weight) => weight === 1));
    });
  }

  it('for the benchmark has about 200 million parameters', () => {
    const { layers, hiddenWidth: width, feedForwardWidth, vocabularySize } = benchModelShape;
    const parameters = layers * (3 * width ** 2 + 3 * width * feedForwardWidth) + 2 * width * vocabularySize;
    assert.ok(Math.abs(parameters / 200e6 - 1) < 0.02, String(parameters));
  });

  it('is refused in a shape that cannot be, and leaves no file', async () => {
    const path = join(folder, 'refused.gguf');
    for (const changes of [{ heads: 3 }, { hiddenWidth: 100 }, { layers: 0 }, { kvHeads: 3 }, { vocabularySize: 33 }]) {
      await assert.rejects(writeRandomModel(path, { ...shape, ...changes }), { code: 'INVALID_ARGUMENT' });
    }
    assert.deepEqual(await readdir(folder), ['model.gguf']);
  });

  it('rounds to the nearest float16', () => {
    for (const [value, bits] of [
      [1, 0x3c00],
      [-2, 0xc000],
      [0.1, 0x2e66],
      [1 / 3, 0x3555],
      [65_472, 0x7bfe],
      [1e-6, 0],
      [2047.9, 0x6800],
    ] as const) {
      assert.equal(float16(value), bits, String(value));
    }
  });
});

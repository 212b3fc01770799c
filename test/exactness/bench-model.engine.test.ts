/** A model of 199 M parameters (Q8_0, random): wide enough that rounding shows what a small model hides. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { join } from 'node:path';

import { openModel } from '../../model/model-file.ts';
import { writeWithTokenNames } from './named-tokens.ts';
import { plantableBits, plantBit, plantedLine, replayPlanted } from './planted-change.ts';
import { prove, recordAll, reportLine } from './proof.ts';
import { assertAgrees } from './public-api-agreement.ts';
import type { RingCut } from './rings.ts';
import { shortBenchScope } from './scopes.ts';
import { chunkedScript, randomTokens } from './script.ts';
import { SliceShelf } from './slice-shelf.ts';
import { contextShape, makeBenchModel, type TemporarySubject } from './subjects.ts';

describe('the 200 M model', () => {
  let bench: TemporarySubject;
  before(async () => {
    bench = await makeBenchModel();
  });
  after(() => bench.remove());

  test('rings compute what the uncut model does', async (t) => {
    const report = await prove(bench, shortBenchScope);
    t.diagnostic(reportLine(report));
    assert.deepEqual(report.faults, []);
    assert.ok(report.observedFound.isExact, `observing changes the model: ${report.observedFound.text}`);
    assert.ok(report.rings > 0 && report.ringsFound.isExact);
  });

  test('one changed bit of one weight is seen', async (t) => {
    const cut: RingCut = [
      { first: 0, last: 4 },
      { first: 5, last: 7 },
      { first: 8, last: 15 },
    ];
    const { vocabularySize } = await openModel(bench.path);
    const shelf = await SliceShelf.create(bench.path, contextShape);
    try {
      const recordings = recordAll(bench, [chunkedScript(randomTokens(1, 32, vocabularySize), 32, 4)]);
      const path = await shelf.cut({ first: 5, last: 7 });
      const bits = await plantableBits(path, 'blk.1.ffn_down.weight', 1_234_567);
      for (const [index, bit] of bits.entries()) {
        const plant = (from: string, to: string): Promise<void> => plantBit(from, to, bit);
        const planted = await replayPlanted(shelf, { cut, stage: 1, recordings, plant });
        t.diagnostic(plantedLine(bit, planted));
        // Activations are rounded to 8 bits before every matrix: the smallest changes may be lost there on the way.
        if (index === 0) assert.ok(!planted.hops.isExact && !planted.logits.isExact, `${bit.what} is seen`);
      }
    } finally {
      await shelf.close();
    }
  });

  test("a ring agrees with node-llama-cpp's public interface on the uncut model", async (t) => {
    const path = join(bench.folder, 'named.gguf');
    await writeWithTokenNames(bench.path, path);
    const { vocabularySize } = await openModel(bench.path);
    const prompt = randomTokens(300, 40, vocabularySize);
    await assertAgrees(t, { name: bench.name, path: bench.path, publicPath: path, prompt, steps: 32, stages: 3 });
  });
});

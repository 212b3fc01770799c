/** The stories model (F16, trained) against the first oracle, and what the comparison sees. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { plantableBits, plantBit, plantedLine, replayPlanted } from './planted-change.ts';
import { prove, recordAll, reportLine } from './proof.ts';
import type { RingCut } from './rings.ts';
import { shortScope } from './scopes.ts';
import { SliceShelf } from './slice-shelf.ts';
import { contextShape, sliceScripts, stories } from './subjects.ts';

test('stories: slices and rings compute what the uncut model does', async (t) => {
  const report = await prove(stories, shortScope);
  t.diagnostic(reportLine(report));
  assert.deepEqual(report.faults, []);
  assert.ok(report.observedFound.isExact, `observing changes the model: ${report.observedFound.text}`);
  assert.ok(report.slices > 0 && report.slicesFound.isExact && report.ringsFound.isExact);
});

test('stories: one changed bit of one weight is seen', async (t) => {
  const cut: RingCut = [
    { first: 0, last: 1 },
    { first: 2, last: 4 },
    { first: 5, last: 7 },
  ];
  const shelf = await SliceShelf.create(stories.path, contextShape);
  try {
    const recordings = recordAll(stories, sliceScripts(shelf.model));
    const path = await shelf.cut({ first: 2, last: 4 });
    for (const tensor of ['blk.1.ffn_down.weight', 'blk.2.attn_q.weight']) {
      const bits = await plantableBits(path, tensor, 4567);
      for (const [index, bit] of bits.entries()) {
        const plant = (from: string, to: string): Promise<void> => plantBit(from, to, bit);
        const planted = await replayPlanted(shelf, { cut, stage: 1, recordings, plant });
        t.diagnostic(plantedLine(bit, planted));
        // The lowest bit may be lost in rounding on some CPUs; what it shows is how fine the comparison is.
        if (index < 2) assert.ok(!planted.hops.isExact && !planted.logits.isExact, `${bit.what} is seen`);
      }
    }
  } finally {
    await shelf.close();
  }
});

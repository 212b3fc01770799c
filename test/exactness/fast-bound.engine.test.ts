/** The bound in `decode: fast` for each kind of weights, in its short form; `npm run prove:exactness -- bound` is the long one. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { fastDifferences, fastDifferencesLine, isWithinBound, quantisations } from './fast-bound.ts';

describe('what neighbours change in decode: fast', () => {
  for (const weights of quantisations) {
    test(`lies within the bound with weights in ${weights}`, async (t) => {
      const found = await fastDifferences(weights, { layers: 4, steps: 32 });
      t.diagnostic(fastDifferencesLine(found));
      assert.ok(isWithinBound(found));
      assert.ok(Math.max(found.paired, found.moved) > 0, 'the shapes round differently, or nothing was compared');
    });
  }

  test('is none of ours to allow beyond it', () => {
    const found = { weights: 'F16', layers: 1, steps: 1, paired: 0, moved: 7e-3 } as const;
    assert.equal(isWithinBound(found), false);
    assert.equal(isWithinBound({ ...found, moved: 5e-3 }), true);
    assert.equal(isWithinBound({ ...found, weights: 'Q8_0' }), true);
    assert.equal(isWithinBound({ ...found, weights: 'Q8_0', paired: 5e-2 }), false);
  });
});

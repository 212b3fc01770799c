import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { leastSamples, secondHalfGrowth } from './growth.ts';

suite('growth in the second half', () => {
  test('is none where memory grew in the first half alone', () => {
    const samples = Array.from({ length: 40 }, (_, index) => Math.min(index, 18) * 10);
    assert.equal(secondHalfGrowth(samples), 0);
  });

  test('is what leaks, and one far sample changes little', () => {
    const samples = Array.from({ length: 40 }, (_, index) => index * 10);
    assert.equal(secondHalfGrowth(samples), 150);
    assert.equal(secondHalfGrowth([...samples.slice(0, -1), 9000]), 150);
  });

  test('is not told from few samples', () => {
    assert.throws(() => secondHalfGrowth(Array.from({ length: leastSamples - 1 }, () => 1)), /enough samples/);
  });
});

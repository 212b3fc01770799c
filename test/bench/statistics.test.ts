import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { lineFit, mean, median, pairedRatios, quantile, spreadOf, spreadText } from './statistics.ts';

suite('statistics', () => {
  test('the median is the middle value, whatever the order', () => {
    assert.equal(median([7]), 7);
    assert.equal(median([9, 1, 5]), 5);
    // As text, 10 would sort before 9.
    assert.equal(median([10, 9, 8]), 9);
  });

  test('the median of an even number of values is the mean of the two in the middle', () => {
    assert.equal(median([4, 1, 3, 2]), 2.5);
    assert.equal(median([8, 8]), 8);
  });

  test('one far value moves the mean and not the median', () => {
    assert.equal(mean([1, 2, 3, 94]), 25);
    assert.equal(median([1, 2, 3, 94]), 2.5);
  });

  test('a quantile is one of the values, by nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    assert.equal(quantile(hundred, 0.5), 50);
    assert.equal(quantile(hundred, 0.99), 99);
    assert.equal(quantile(hundred, 1), 100);
    assert.equal(quantile(hundred, 0.001), 1);
    assert.equal(quantile([3, 1, 2], 0.5), 2);
    assert.equal(quantile([3, 1, 2], 0.99), 3);
  });

  test('a spread names the median, both ends and how many runs there were', () => {
    assert.deepEqual(spreadOf([0.97, 1.01, 0.99, 0.98]), { median: 0.985, least: 0.97, greatest: 1.01, runs: 4 });
  });

  test('ratios pair the figures of one round, so that a slow round cancels out', () => {
    // The third round ran while the machine did something else, at a quarter of the speed.
    const ring = [49, 98, 12.25];
    const uncut = [50, 100, 12.5];
    assert.deepEqual(pairedRatios(ring, uncut), [0.98, 0.98, 0.98]);
    assert.equal(median(pairedRatios(ring, uncut)), 0.98);
    // The ratio of the medians of other rounds would say something else.
    assert.equal(median([49, 98, 12.25]) / median([50, 12.5, 12.5]), 3.92);
  });

  test('a spread is written with its median first', () => {
    assert.equal(spreadText(spreadOf([3, 1, 2]), 1), '2.0 (1.0 to 3.0)');
  });

  test('a line through points on a line is that line', () => {
    const points = [1, 2, 4, 8, 16].map((x) => [x, 3 + 0.25 * x] as const);
    const { slope, intercept, rSquared } = lineFit(points);
    assert.ok(Math.abs(slope - 0.25) < 1e-12 && Math.abs(intercept - 3) < 1e-12 && Math.abs(rSquared - 1) < 1e-12);
  });

  test('a line through a bend explains less of it', () => {
    const { slope, rSquared } = lineFit([1, 2, 4, 8, 16].map((x) => [x, x * x] as const));
    assert.ok(slope > 10 && rSquared < 0.97, `${slope} ${rSquared}`);
    assert.equal(
      lineFit([
        [0, 5],
        [1, 5],
      ]).slope,
      0,
    );
    assert.throws(
      () =>
        lineFit([
          [2, 1],
          [2, 3],
        ]),
      /two places/,
    );
  });

  test('nothing, a missing round and a division by zero are refused', () => {
    assert.throws(() => median([]), /something to sum up/);
    assert.throws(() => spreadOf([]), /something to sum up/);
    assert.throws(() => quantile([1], 0), /share/);
    assert.throws(() => pairedRatios([1, 2], [1]), /both figures/);
    assert.throws(() => pairedRatios([1], [0]), /above 0/);
  });

  test('the values handed in stay in their order', () => {
    const values = [3, 1, 2];
    median(values);
    quantile(values, 0.5);
    spreadOf(values);
    assert.deepEqual(values, [3, 1, 2]);
  });
});

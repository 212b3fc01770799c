import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { arrivalLines, arrivalVerdicts, splitIntervals, summarizeArrivals } from './arrival-summary.ts';

/** A token every 10 ms until 1000, every 40 ms until 1400, every 10 ms again. */
const timesMs = [
  ...Array.from({ length: 101 }, (_, index) => index * 10),
  ...Array.from({ length: 10 }, (_, index) => 1040 + index * 40),
  1410,
  1420,
];
const stages = [{ rowsPerDecode: 8, computeShare: 0.5 }];
const run = { timesMs, submittedMs: 1005, answeredMs: 1400, stages };

suite('a prompt that arrives', () => {
  test('disturbs the intervals that overlap it, and no others', () => {
    const { undisturbed, disturbed } = splitIntervals(run);
    assert.deepEqual([undisturbed.length, new Set(undisturbed)], [100, new Set([10])]);
    assert.deepEqual([disturbed.length, new Set(disturbed)], [10, new Set([40])]);
  });

  test('is judged by the ratio of the percentiles of a round', () => {
    const slow = { timesMs: timesMs.map((ms) => 2 * ms), submittedMs: 2010, answeredMs: 2800, stages };
    const figures = summarizeArrivals([run, slow], 1024);
    assert.deepEqual(figures.p99Ratio, { median: 4, least: 4, greatest: 4, runs: 2 });
    assert.equal(figures.disturbed.count, 20);
    assert.deepEqual(
      arrivalVerdicts(figures).map(({ isMet }) => isMet),
      [false],
    );
    assert.match(
      arrivalLines(figures).join('\n'),
      /while 1024 tokens arrive .* 20\n.*after 593 .* 8\.00 rows per decode and computed 50 %/,
    );
  });

  test('that disturbed nobody is no measurement', () => {
    assert.throws(
      () => summarizeArrivals([{ timesMs: [0, 10, 20], submittedMs: 30, answeredMs: 40, stages }], 9),
      /sum up/,
    );
  });
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { decayReport, type DecayPair, type DecayRun } from './decay-summary.ts';

const even = (ms: number, count = 8): readonly number[] => Array.from({ length: count }, () => ms);
const size = (records: number) => ({ records, bytes: records * 2 ** 20 });
const run = (pairs: readonly DecayPair[], records: number): DecayRun => ({
  ...{ pairs, before: size(records), after: size(records + 10) },
});
const steady = { ringMs: even(10), uncutMs: even(8) };

suite('decay', () => {
  test('is none where a slower machine falls on both', () => {
    const slower = { ringMs: even(20), uncutMs: even(16) };
    const { verdicts, blocks } = decayReport({
      runs: [run([steady, steady], 0), run([steady, slower], 10), run([slower, slower], 20), run([slower, steady], 30)],
      long: run([steady, slower], 40),
    });
    assert.equal(verdicts.length, 6);
    for (const { isMet, found } of verdicts) assert.deepEqual([isMet, found.median, found.runs], [true, 1, 2]);
    assert.match(blocks.flat().join('\n'), /from 0 records to 50, from 0\.0 MiB to 50\.0 MiB/);
  });

  test('is what the ring alone loses, from run to run and within a long answer', () => {
    const lost = { ringMs: even(16), uncutMs: even(8) };
    const long = { ringMs: [...even(10, 4), ...even(11, 2), ...even(16, 2)], uncutMs: even(8) };
    const { verdicts } = decayReport({
      runs: [run([steady], 0), run([steady], 10), run([steady], 20), run([lost], 30)],
      long: run([long], 40),
    });
    const found = verdicts.map(({ figure, found: { median }, isMet }) => [figure, median, isMet]);
    assert.deepEqual(found, [
      ['decode beside the uncut model, run 2 / first', 1, true],
      ['decode beside the uncut model, run 3 / first', 1, true],
      ['decode beside the uncut model, run 4 / first', 0.625, false],
      ['decode beside the uncut model, long, quarter 2 / first', 1, true],
      ['decode beside the uncut model, long, quarter 3 / first', 10 / 11, false],
      ['decode beside the uncut model, long, quarter 4 / first', 0.625, false],
    ]);
  });
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { spreadOf } from './statistics.ts';
import { atLeast, atMost, beside, verdictLines } from './verdict.ts';

suite('a verdict', () => {
  test('goes by the median, and a target that is just reached is met', () => {
    const found = spreadOf([0.9, 0.98, 1.2]);
    assert.equal(atLeast(0.98, { figure: 'ratio', found }).isMet, true);
    assert.equal(atLeast(0.981, { figure: 'ratio', found }).isMet, false);
    assert.equal(atMost(0.98, { figure: 'time', found, unit: 'ms' }).isMet, true);
    assert.equal(atMost(0.979, { figure: 'time', found, unit: 'ms' }).isMet, false);
  });

  test('is none where nothing is demanded', () => {
    const { isMet, target, found } = beside({ figure: 'speed', found: 7 });
    assert.deepEqual([isMet, target, found.runs], [null, null, 1]);
  });

  test('stands in a table with target, spread and runs', () => {
    const lines = verdictLines([
      atLeast(0.98, { figure: 'decode', found: spreadOf([0.7, 0.71, 0.8]) }),
      atMost(1, { figure: 'CPU', found: spreadOf([0.5, 0.6]), unit: 'ms' }),
      beside({ figure: 'large', found: 0.97 }),
    ]);
    assert.deepEqual(
      lines.map((line) => line.split(/ {2,}/)),
      [
        ['figure', 'target', 'median (least to greatest)', 'runs'],
        ['decode', 'at least 0.98', '0.710 (0.700 to 0.800)', '3', 'MISSED'],
        ['CPU, ms', 'at most 1', '0.550 (0.500 to 0.600)', '2', 'met'],
        ['large', '-', '0.970 (0.970 to 0.970)', '1'],
      ],
    );
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bar, percentText, rateText, secondsText, sparkline } from './figure-text.ts';
import { plainMarks, unicodeMarks } from './styled-line.ts';

test('times and rates have three digits', () => {
  assert.deepEqual([0.000_04, 0.000_84, 0.0123, 0.123, 0.9996, 4.812, 12].map(secondsText), [
    '0.04 ms',
    '0.84 ms',
    '12.3 ms',
    '123 ms',
    '1000 ms',
    '4.81 s',
    '12.0 s',
  ]);
  assert.deepEqual([0, 0.5, 9.996, 104.2].map(rateText), ['0', '0.50', '10.0', '104']);
  assert.deepEqual([0, 0.314, 1].map(percentText), ['0%', '31%', '100%']);
});

test('a sparkline shows the latest values that fit, as shares of the greatest, and gaps', () => {
  assert.equal(sparkline([0, 5, null, 10], 8, unicodeMarks), '▁▅ █');
  assert.equal(sparkline([100, 0, 5, 10], 3, unicodeMarks), '▁▅█');
  assert.equal(sparkline([0, 0], 3, unicodeMarks), '▁▁');
  assert.equal(sparkline([0, 5, 10], 3, plainMarks), '.+#');
  assert.equal(sparkline([1], 0, plainMarks), '');
});

test('a bar is as full as its share, and never longer', () => {
  assert.equal(bar(0.5, 4, unicodeMarks), '██░░');
  assert.equal(bar(7, 4, plainMarks), '####');
  assert.equal(bar(-1, 4, plainMarks), '....');
});

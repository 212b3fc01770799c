import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cpuRangesOf, cpusOfRanges, rangesOfCpus } from './cpu-range.ts';
import { cpusText } from './inventory.ts';

test('a set of CPUs has one text, whatever order its numbers come in', () => {
  assert.equal(cpusText(rangesOfCpus([9, 1, 0, 8, 4])), '0-1,4,8-9');
  assert.deepEqual(rangesOfCpus([]), []);
});

test('a text gives the set back', () => {
  const reading = cpuRangesOf('0-1,4,8-9');
  assert(reading.kind === 'ranges');
  assert.deepEqual(cpusOfRanges(reading.ranges), [0, 1, 4, 8, 9]);
  assert.equal(cpusText(rangesOfCpus(cpusOfRanges(reading.ranges))), '0-1,4,8-9');
});

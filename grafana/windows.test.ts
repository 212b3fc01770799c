import assert from 'node:assert/strict';
import { test } from 'node:test';

import { durationText, realWindows, scaledWindows } from './windows.ts';

test('durations are written as Prometheus reads them', () => {
  assert.deepEqual([0, 45, 90, 120, 3600, 86_400].map(durationText), ['0s', '45s', '90s', '2m', '1h', '1d']);
});

test('windows shrink together, and none below what scrapes allow', () => {
  const scaled = scaledWindows(120, 1);
  assert.equal(scaled.hourSeconds, realWindows.hourSeconds / 120);
  assert.equal(scaled.slopeSeconds, realWindows.slopeSeconds / 120);
  assert.equal(scaled.rateSeconds, 4);
  assert.equal(scaled.holdSeconds.short, 1);
  assert.equal(scaled.holdSeconds.none, 0);
});

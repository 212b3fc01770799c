import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SentFrames } from './sent-frames.ts';

test('frames are acknowledged oldest first, each with its own time', () => {
  const frames = new SentFrames();
  frames.add(100, 0);
  frames.add(20, 1);
  frames.add(3, 2);
  assert.equal(frames.acknowledge(2, 5), 120);
  assert.equal(frames.count, 1);
  assert.deepEqual([frames.ackTimes.quantile(0.5), frames.ackTimes.quantile(1)], [4, 5]);
});

test('time in which frames waited for a stage to load is none of the link’s', () => {
  const frames = new SentFrames();
  frames.add(100, 0);
  frames.wait();
  frames.add(20, 32_000);
  assert.equal(frames.acknowledge(2, 32_003), 120);
  assert.equal(frames.count, 0);
  assert.deepEqual([frames.ackTimes.quantile(0.5), frames.ackTimes.quantile(1)], [3, 3]);
});

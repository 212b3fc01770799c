import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hostName } from '../protocol/ids.ts';
import { TransferProgress } from './transfer-progress.ts';

const ant = hostName('ant');
const bee = hostName('bee');

test('hosts are told apart, and what is left is told from the rate', () => {
  const progress = new TransferProgress(new Map([...([[ant, 4e6]] as const), ...([[bee, 8e6]] as const)]));
  assert.equal(progress.text('sending', 0), 'sending 0 B of 12.0 MB (ant 0%, bee 0%)');
  progress.place(ant, 'a', 1e6);
  progress.move(1e6, 1000);
  progress.place(bee, 'b', 2e6);
  progress.move(2e6, 2000);
  assert.equal(progress.fraction, 0.25);
  assert.equal(progress.text('sending', 2000), 'sending 3.0 MB of 12.0 MB, 2.0 MB/s, 5 s left (ant 25%, bee 25%)');
});

test('what lay there before is done, but not part of the rate', () => {
  const progress = new TransferProgress(new Map([[ant, 10e6]]));
  progress.place(ant, 'a', 9e6);
  assert.equal(progress.bytesPerSecond(1000), null);
  progress.move(0, 1000);
  progress.place(ant, 'a', 9.5e6);
  progress.move(0.5e6, 2000);
  assert.equal(progress.bytesPerSecond(2000), 0.5e6);
  assert.equal(progress.text('sending', 2000), 'sending 9.5 MB of 10.0 MB, 500 kB/s, 1 s left (ant 95%)');
});

test('a part may go back, and a rate forgets what was long ago', () => {
  const progress = new TransferProgress(new Map([[ant, 100e6]]));
  progress.move(50e6, 0);
  progress.place(ant, 'a', 50e6);
  progress.place(ant, 'a', 0);
  assert.equal(progress.fraction, 0);
  for (let atMs = 60_000; atMs <= 64_000; atMs += 1000) progress.move(1e6, atMs);
  assert.equal(progress.bytesPerSecond(64_000), 1e6);
});

test('nothing to do is done', () => {
  assert.equal(new TransferProgress(new Map()).fraction, 1);
});

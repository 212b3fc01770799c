import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ringName } from '../../protocol/ids.ts';
import { metricTable } from '../../protocol/metric-table.ts';
import { DurationCounts } from './duration-counts.ts';
import { sampleMessages } from './sample-messages.ts';
import { Samples } from './samples.ts';

test('a status carries values of one ring and of none, a histogram as its sum and count', () => {
  const samples = new Samples(1500);
  samples.addState('p4_journal_up', {}, true);
  for (const ring of ['tale', 'other']) samples.add('p4_ring_generated_tokens_total', { ring }, ring.length);
  const times = new DurationCounts(metricTable.p4_ring_queue_seconds.buckets);
  times.add(0.25);
  times.add(0.5);
  samples.addTimes('p4_ring_queue_seconds', { ring: 'tale' }, times);
  const tale = [
    { name: 'p4_ring_generated_tokens_total', labels: { ring: 'tale' }, value: 4, count: '0' },
    { name: 'p4_ring_queue_seconds', labels: { ring: 'tale' }, value: 0.75, count: '2' },
    { name: 'p4_journal_up', labels: {}, value: 1, count: '0' },
  ];
  assert.deepEqual(sampleMessages(samples, ringName('tale')), { atSeconds: 1.5, samples: tale });
  assert.equal(sampleMessages(samples, null).samples.length, 4);
});

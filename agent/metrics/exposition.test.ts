import assert from 'node:assert/strict';
import { test } from 'node:test';

import { metricTable } from '../../protocol/metric-table.ts';
import { DurationCounts } from './duration-counts.ts';
import { exposition } from './exposition.ts';
import { Samples } from './samples.ts';

function someSamples(): Samples {
  const samples = new Samples(0);
  samples.add('p4_ring_generated_tokens_total', { ring: 'toy' }, 12);
  samples.add('p4_ring_generated_tokens_total', { ring: 'two' }, 0);
  samples.add('p4_disk_free_bytes', { folder: 'state' }, NaN);
  samples.addInfo('p4_gpu_info', { gpu: '0', name: 'a "b"\\\n' });
  const times = new DurationCounts(metricTable.p4_journal_checkpoint_seconds.buckets);
  for (const seconds of [0.0005, 0.003, 1000]) times.add(seconds);
  samples.addTimes('p4_journal_checkpoint_seconds', {}, times);
  times.add(1);
  return samples;
}

test('text names, escapes and adds up as Prometheus reads it, and leaves out what is not known', async () => {
  const { text, spentMs } = await exposition(someSamples(), 'text');
  const { help } = metricTable.p4_ring_generated_tokens_total;
  assert.ok(
    text.startsWith(
      `# HELP p4_ring_generated_tokens_total ${help}\n# TYPE p4_ring_generated_tokens_total counter\n` +
        'p4_ring_generated_tokens_total{ring="toy"} 12\np4_ring_generated_tokens_total{ring="two"} 0\n',
    ),
  );
  assert.ok(text.includes('p4_gpu_info{gpu="0",name="a \\"b\\"\\\\\\n"} 1\n'));
  assert.ok(!text.includes('p4_disk_free_bytes'));
  const buckets = [...text.matchAll(/^p4_journal_checkpoint_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm)];
  assert.deepEqual(
    buckets
      .filter(([, le]) => ['0.001', '0.002', '0.005', '300', '+Inf'].includes(le ?? ''))
      .map(([, , count]) => count),
    ['1', '1', '2', '2', '3'],
  );
  assert.ok(text.includes('p4_journal_checkpoint_seconds_sum 1000.0035\np4_journal_checkpoint_seconds_count 3\n'));
  assert.ok(spentMs >= 0);
});

test('OpenMetrics names a counter without its suffix, its values with it, and ends with its mark', async () => {
  const { text } = await exposition(someSamples(), 'openmetrics');
  assert.ok(text.includes('# TYPE p4_ring_generated_tokens counter\np4_ring_generated_tokens_total{ring="toy"} 12\n'));
  assert.doesNotMatch(text, /\n\n/);
  assert.ok(text.endsWith('\n# EOF\n'));
});

test('nothing is left of a collection in the next', async () => {
  await exposition(someSamples(), 'text');
  assert.equal((await exposition(new Samples(0), 'text')).text, '\n');
});

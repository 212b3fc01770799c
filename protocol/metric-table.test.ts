import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { MetricDefinition } from './metric-definition.ts';
import { metricNames, metricTable } from './metric-table.ts';

const entries = metricNames.map((name): readonly [string, MetricDefinition] => [name, metricTable[name]]);

suite('the table of metrics', () => {
  test('names each as Prometheus would: its unit at the end, `_total` for counters, `_info` for what says by labels', () => {
    for (const [name, { type, unit }] of entries) {
      assert.match(name, /^(p4|process)(_[a-z][a-z0-9]*)+$/);
      assert.equal(name.endsWith('_total'), type === 'counter', name);
      assert.equal(name.endsWith('_info'), type === 'info', name);
      const base = name.replace(/_total$/, '');
      if (unit === 'seconds' || unit === 'bytes' || unit === 'ratio') assert.ok(base.endsWith(`_${unit}`), name);
      else assert.doesNotMatch(base, /_(seconds|bytes|ratio|ms|milliseconds|percent|count|sum|bucket)$/, name);
    }
  });

  test('gives histograms, and only them, bounds that rise', () => {
    for (const [name, { type, buckets }] of entries) {
      assert.equal(buckets !== undefined, type === 'histogram', name);
      for (const [index, bound] of (buckets ?? []).entries()) assert.ok(bound > (buckets?.[index - 1] ?? 0), name);
    }
  });

  test('resolves a millisecond where a token’s time is measured', () => {
    for (const [name, { buckets }] of entries) {
      const low = (buckets ?? []).filter((bound) => bound <= 0.01);
      if (!name.startsWith('p4_ring_') || buckets === undefined) continue;
      assert.deepEqual(
        low,
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((ms) => ms / 1000),
        name,
      );
    }
  });

  test('says each in one sentence, and uses no label twice', () => {
    for (const [name, { help, labels }] of entries) {
      assert.match(help, /^[A-Z0-9][^\n]*\.$/, name);
      assert.equal(new Set(labels).size, labels.length, name);
    }
  });

  test('has no label that could bear a generation, a prompt or a request (G4)', () => {
    const labels = new Set(entries.flatMap(([, definition]) => definition.labels));
    for (const label of ['generation', 'load', 'session', 'request', 'token', 'prompt'])
      assert.ok(![...labels].some((each) => each.includes(label)), label);
  });
});

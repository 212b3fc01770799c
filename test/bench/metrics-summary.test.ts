import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { DecodeRun } from './arm.ts';
import { metricsReport } from './metrics-summary.ts';

const run = (intervalsMs: readonly number[], agentCpuMs: number): DecodeRun => ({
  ...{ tokens: [], intervalsMs, computeMs: [] },
  cpuMs: [agentCpuMs, 9],
});
const even = (ms: number): readonly number[] => Array.from({ length: 99 }, () => ms);

suite('what it costs to be seen', () => {
  test('is a ratio of speeds in each round, and one of percentiles in each start', () => {
    const start = {
      off: [run(even(10), 1), run(even(20), 1)],
      on: [run(even(10), 1.1), run(even(20), 1.1)],
      scraped: [run([...even(10), 30], 1.2), run([...even(20), 30], 1.2)],
    };
    const slow = {
      off: [run(even(10), 1)],
      on: [run(even(12.5), 1.1)],
      scraped: [run([...even(12.5), 50, 50], 1.2)],
    };
    const { verdicts, blocks } = metricsReport([start, slow], 17);
    assert.deepEqual(
      verdicts
        .map(({ found: { least, median, greatest, runs }, target, isMet }) => ({
          ...{ least, median, greatest, runs, target: target?.value ?? null, isMet },
        }))
        .slice(0, 2),
      [
        { least: 0.8, median: 1, greatest: 1, runs: 3, target: 0.99, isMet: true },
        { least: 1, median: 2.5, greatest: 4, runs: 2, target: 1.05, isMet: false },
      ],
    );
    const text = blocks.flat().join('\n');
    assert.match(text, /metrics on, 10 scrapes a second .* 1\.20 \(1\.20 to 1\.20\)\n17 scrapes were answered\./);
  });
});

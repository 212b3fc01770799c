import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { DurationCounts } from './duration-counts.ts';
import { parseGpuLine } from './gpu-figures.ts';
import { cpuSeconds } from './host-figures.ts';
import { SendingMeter } from './link-meter.ts';
import { formatFor } from './metrics-pages.ts';
import { Pace } from './pace.ts';
import { limits } from '../../protocol/limits.ts';

test('a time falls into the first bucket whose bound it does not exceed', () => {
  const times = new DurationCounts([0.001, 0.01, 0.1]);
  for (const seconds of [0, 0.001, 0.0011, 0.1, 0.2, 60]) times.add(seconds);
  assert.deepEqual([...times.counts], [2, 1, 1, 2]);
  assert.equal(times.count, 6);
  assert.ok(Math.abs(times.sum - 60.3021) < 1e-9);
});

test('a rate gives each its place, and takes none for whom it sends away', () => {
  const pace = new Pace(100);
  assert.deepEqual(
    [5, 5, 5].map((nowMs) => pace.takeMs(nowMs, 15)),
    [0, 10, null],
  );
  assert.equal(pace.takeMs(5, 20), 20, 'who was sent away has not moved the others back');
  assert.equal(pace.takeMs(1000, 15), 0);
});

test('a window is full from the frame that fills it until one is acknowledged, or the link is gone', () => {
  const meter = new SendingMeter({ source: 0, destination: 1, peer: 'bee' });
  const full = limits.linkWindowFrames;
  meter.sent(10, full - 1, 1000);
  assert.equal(meter.fullSeconds(2000), 0);
  meter.sent(10, full, 2000);
  assert.equal(meter.fullSeconds(2500), 0.5);
  meter.moved(full - 1, 3000);
  meter.moved(0, 4000);
  assert.equal(meter.fullSeconds(9000), 1);
  meter.sent(10, full, 10_000);
  meter.moved(0, 10_250);
  assert.equal(meter.fullSeconds(20_000), 1.25);
});

suite('figures of a host', () => {
  test('are those of all its CPUs, from the kernel’s first line', () => {
    const stat = 'cpu  100 20 300 4000 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 1\n';
    assert.deepEqual(Object.fromEntries(cpuSeconds(stat)), {
      ...{ user: 1, nice: 0.2, system: 3, idle: 40, iowait: 0.5, irq: 0.06, softirq: 0.07, steal: 0.08 },
    });
    assert.deepEqual(cpuSeconds(''), [], 'where the kernel shows nothing, nothing is said');
  });

  test('know a GPU by its line, and leave out what it does not tell', () => {
    assert.deepEqual(parseGpuLine('0, NVIDIA H200, 143771, 512, 37'), {
      ...{ index: 0, name: 'NVIDIA H200', memoryBytes: 143_771 * 1024 ** 2, memoryUsedBytes: 512 * 1024 ** 2 },
      utilization: 0.37,
    });
    assert.ok(Number.isNaN(parseGpuLine('1, NVIDIA A100 MIG, 40960, 0, [N/A]')?.utilization));
    for (const line of ['', 'Unable to determine the device handle', '-1, x, 1, 1, 1', '64, x, 1, 1, 1', '0, x, 1, 1'])
      assert.equal(parseGpuLine(line), null, line);
  });
});

test('OpenMetrics is for those who ask for it and do not like it less', () => {
  const prometheus =
    'application/openmetrics-text;version=1.0.0;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1';
  assert.equal(formatFor(prometheus), 'openmetrics');
  assert.equal(formatFor('text/plain, application/openmetrics-text;q=0.9'), 'text');
  for (const accept of ['', '*/*', 'text/html', 'application/openmetrics-text;q=0', 'application/openmetrics-textual'])
    assert.equal(formatFor(accept), 'text', accept);
});

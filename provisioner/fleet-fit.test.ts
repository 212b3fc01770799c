import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hostName } from '../protocol/ids.ts';
import { requireFit, shortfallsOf, type HostNeed } from './fleet-fit.ts';

const need = (host: string, change: Partial<HostNeed> = {}): HostNeed => ({
  ...{ host: hostName(host), machineId: host, memoryBytes: 3e9, memoryAvailableBytes: 4e9 },
  ...{ diskBytes: 2e9, diskFreeBytes: 9e9, ...change },
});

test('a plan that fits is not complained about', () => {
  assert.deepEqual(shortfallsOf([need('ant'), need('bee')]), []);
  assert.doesNotThrow(() => {
    requireFit([need('ant', { memoryBytes: 4e9, diskBytes: 9e9 })], []);
  });
});

test('what is short is told for every host at once, memory and disk', () => {
  const needs = [
    need('ant', { memoryBytes: 5e9 }),
    need('bee'),
    need('cow', { memoryAvailableBytes: 1e9, diskFreeBytes: 0 }),
  ];
  const shortfalls = [
    'ant: memory short by 1.0 GB (5.0 GB needed, 4.0 GB free)',
    'cow: memory short by 2.0 GB (3.0 GB needed, 1.0 GB free)',
    'cow: disk short by 2.0 GB (2.0 GB needed, 0 B free)',
  ];
  assert.throws(
    () => {
      requireFit(needs, []);
    },
    { code: 'PLAN_DOES_NOT_FIT', facts: { shortfalls } },
  );
});

test('hosts of one machine share what it has; hosts that do not say which they are share nothing', () => {
  const together = [need('ant', { machineId: 'm' }), need('bee', { machineId: 'm' })];
  assert.deepEqual(shortfallsOf(together), ['ant and bee: memory short by 2.0 GB (6.0 GB needed, 4.0 GB free)']);
  assert.deepEqual(shortfallsOf(together.map((one) => ({ ...one, machineId: '' }))), []);
});

test('a host that needs nothing more is not judged, however full it is', () => {
  const full = { memoryBytes: 0, memoryAvailableBytes: 0, diskBytes: 0, diskFreeBytes: 0 };
  assert.deepEqual(shortfallsOf([need('ant', full)]), []);
});

test('a stage that would outgrow the limit that the plan gives it is told with the hosts', () => {
  const stage = { node: 1, host: hostName('ant'), memoryBytes: 3e9, limitBytes: 2e9 };
  const shortfalls = ['stage 1 on ant: memory of its limit short by 1.0 GB (3.0 GB needed, 2.0 GB free)'];
  assert.throws(
    () => {
      requireFit([need('ant')], [{ ...stage, node: 0, limitBytes: 3e9 }, stage]);
    },
    { code: 'PLAN_DOES_NOT_FIT', facts: { shortfalls } },
  );
});

import assert from 'node:assert/strict';
import { readFileSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { confine, cpuMask } from './confinement.ts';

const nothing = { cpus: null, memoryLimitBytes: null };
const statusOf = (name: string): string =>
  new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(
    readFileSync(`/proc/${readlinkSync('/proc/thread-self')}/status`, 'utf8'),
  )?.[1] ?? '';

test('a mask has a bit for each CPU', () => {
  const mask = cpuMask([
    { first: 0, last: 2 },
    { first: 9, last: 9 },
    { first: 9999, last: 9999 },
  ]);
  assert.deepEqual([...mask.subarray(0, 3)], [0b111, 0b10, 0]);
  assert.equal(mask.at(-1), 0b1000_0000);
});

test('this thread computes on the CPUs it is given, and on no others', () => {
  const first = Number(/^[0-9]+/.exec(statusOf('Cpus_allowed_list'))?.[0]);
  confine({ ...nothing, cpus: [{ first, last: first }] });
  assert.equal(statusOf('Cpus_allowed_list'), String(first));
});

test('CPUs that the host does not have are refused, and nothing changes', () => {
  const former = statusOf('Cpus_allowed_list');
  assert.throws(
    () => {
      confine({ ...nothing, cpus: [{ first: 9998, last: 9999 }] });
    },
    (error) => error instanceof P4Error && error.code === 'STAGE_CONFINEMENT' && error.facts['cpus'] === '9998-9999',
  );
  assert.equal(statusOf('Cpus_allowed_list'), former);
});

test('the system knows the limit of memory', () => {
  const limit = 2 ** 40;
  confine({ ...nothing, memoryLimitBytes: limit });
  assert.match(readFileSync('/proc/self/limits', 'utf8'), new RegExp(`^Max data size\\s+${limit}\\s+${limit}\\s`, 'm'));
});

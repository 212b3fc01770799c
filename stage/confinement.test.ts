import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

import { P4Error } from '../protocol/errors.ts';
import { confine, cpuMask } from './confinement.ts';

const nothing = { cpus: null, memoryLimitBytes: null };
/** CPUs that threads of this process may run on, each list once. */
const allowed = (): readonly string[] => {
  const lists = readdirSync('/proc/self/task').map((thread) => {
    const status = readFileSync(`/proc/self/task/${thread}/status`, 'utf8');
    return /^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '';
  });
  return [...new Set(lists)];
};

test('a mask has a bit for each CPU', () => {
  const mask = cpuMask([
    { first: 0, last: 2 },
    { first: 9, last: 9 },
    { first: 9999, last: 9999 },
  ]);
  assert.deepEqual([...mask.subarray(0, 3)], [0b111, 0b10, 0]);
  assert.equal(mask.at(-1), 0b1000_0000);
});

test('all threads, this one’s children too, run on the CPUs that are given, and on no others', async () => {
  const first = Number(/^[0-9]+/.exec(allowed()[0] ?? '')?.[0]);
  confine({ ...nothing, cpus: [{ first, last: first }] });
  assert.ok(readdirSync('/proc/self/task').length > 1, 'Node has threads of its own');
  assert.deepEqual(allowed(), [String(first)]);
  const worker = new Worker('setInterval(() => {}, 1000)', { eval: true });
  try {
    await once(worker, 'online');
    assert.deepEqual(allowed(), [String(first)]);
  } finally {
    await worker.terminate();
  }
});

test('CPUs that the host does not have are refused, and nothing changes', () => {
  const former = allowed();
  assert.throws(
    () => {
      confine({ ...nothing, cpus: [{ first: 9998, last: 9999 }] });
    },
    (error) => error instanceof P4Error && error.code === 'STAGE_CONFINEMENT' && error.facts['cpus'] === '9998-9999',
  );
  assert.deepEqual(allowed(), former);
});

test('the system knows the limit of memory', () => {
  const limit = 2 ** 40;
  confine({ ...nothing, memoryLimitBytes: limit });
  assert.match(readFileSync('/proc/self/limits', 'utf8'), new RegExp(`^Max data size\\s+${limit}\\s+${limit}\\s`, 'm'));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cpusText } from '../../protocol/inventory.ts';
import { rangesOfCpus } from '../../protocol/cpu-range.ts';
import type { CpuGroup } from '../../protocol/cpu-topology.ts';
import { limits } from '../../protocol/limits.ts';
import { cpuGroups, usableCpus, type ReadFile } from './topology.ts';

/** Files as Linux shows them on one host. */
type Files = Readonly<Record<string, string>>;

const reader =
  (files: Files): ReadFile =>
  (path) =>
    files[path] ?? '';

const allowed = (list: string): Files => ({
  '/proc/self/status': `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${list}\n`,
});
const cpu = (number: number, files: Files): Files =>
  Object.fromEntries(
    Object.entries(files).map(([name, text]) => [`/sys/devices/system/cpu/cpu${number}/${name}`, `${text}\n`]),
  );
const online = (list: string): Files => ({ '/sys/devices/system/cpu/online': `${list}\n` });
const nodes = (...lists: readonly string[]): Files => ({
  '/sys/devices/system/node/has_cpu': lists.length === 1 ? '0\n' : `0-${lists.length - 1}\n`,
  ...Object.fromEntries(lists.map((list, node) => [`/sys/devices/system/node/node${node}/cpulist`, `${list}\n`])),
});

/** Groups as texts: node, capacity, the CPUs of each core. */
const texts = (groups: readonly CpuGroup[]): readonly string[] =>
  groups.map(
    ({ numaNode, capacity, cores }) =>
      `node ${numaNode}, ${capacity}: ${cores.map((core) => cpusText(rangesOfCpus(core))).join(' ')}`,
  );

/** Four cores of two threads, one cache: CPUs 0 to 3 are the first threads of the cores, 4 to 7 the second ones. */
const desktop: Files = Object.assign(
  { ...allowed('0-7'), ...online('0-7'), ...nodes('0-7') },
  ...Array.from({ length: 8 }, (_none, number) =>
    cpu(number, {
      'topology/core_cpus_list': `${number % 4},${(number % 4) + 4}`,
      'topology/physical_package_id': '0',
      'cache/index0/shared_cpu_list': `${number % 4},${(number % 4) + 4}`,
      'cache/index2/shared_cpu_list': `${number % 4},${(number % 4) + 4}`,
      'cache/index3/shared_cpu_list': '0-7',
    }),
  ),
) as Files;

test('a desktop whose cores run two threads each', () => {
  assert.deepEqual(texts(cpuGroups(reader(desktop))), ['node 0, 1024: 0,4 1,5 2,6 3,7']);
});

test('of a core that p4 may not use whole, the part counts that it may', () => {
  assert.deepEqual(texts(cpuGroups(reader({ ...desktop, ...allowed('0-1,4-6') }))), ['node 0, 1024: 0,4 1,5 6']);
});

test('a server of two sockets, each with two caches', () => {
  const server: Files = Object.assign(
    { ...allowed('0-15'), ...online('0-15'), ...nodes('0-7', '8-15') },
    ...Array.from({ length: 16 }, (_none, number) =>
      cpu(number, {
        'topology/core_cpus_list': String(number),
        'cache/index2/shared_cpu_list': String(number),
        'cache/index3/shared_cpu_list': `${number - (number % 4)}-${number - (number % 4) + 3}`,
      }),
    ),
  ) as Files;
  assert.deepEqual(texts(cpuGroups(reader(server))), [
    'node 0, 1024: 0 1 2 3',
    'node 0, 1024: 4 5 6 7',
    'node 1, 1024: 8 9 10 11',
    'node 1, 1024: 12 13 14 15',
  ]);
});

test('a kernel without NUMA still tells sockets apart', () => {
  const sockets: Files = Object.assign(
    { ...allowed('0-3') },
    ...[0, 1, 2, 3].map((number) => cpu(number, { 'topology/physical_package_id': String(number >> 1) })),
  ) as Files;
  assert.deepEqual(texts(cpuGroups(reader(sockets))), ['node 0, 1024: 0 1', 'node 1, 1024: 2 3']);
});

test('a virtual machine that shows nothing of its processor', () => {
  assert.deepEqual(texts(cpuGroups(reader(allowed('0-2')))), ['node 0, 1024: 0 1 2']);
});

test('a cache that one core has to itself keeps no cores apart', () => {
  const virtual: Files = Object.assign(
    { ...allowed('0-3'), ...online('0-3'), ...nodes('0-3') },
    ...[0, 1, 2, 3].map((number) =>
      cpu(number, {
        'topology/thread_siblings_list': `${number - (number % 2)}-${number - (number % 2) + 1}`,
        'cache/index2/shared_cpu_list': `${number - (number % 2)}-${number - (number % 2) + 1}`,
      }),
    ),
  ) as Files;
  assert.deepEqual(texts(cpuGroups(reader(virtual))), ['node 0, 1024: 0-1 2-3']);
});

test('cores of two kinds in one cluster are two groups', () => {
  const phone: Files = Object.assign(
    { ...allowed('0-7'), ...online('0-7') },
    ...Array.from({ length: 8 }, (_none, number) =>
      cpu(number, {
        'topology/core_cpus_list': String(number),
        'cache/index3/shared_cpu_list': '0-7',
        cpu_capacity: number < 4 ? '446' : '1024',
      }),
    ),
  ) as Files;
  assert.deepEqual(texts(cpuGroups(reader(phone))), ['node 0, 446: 0 1 2 3', 'node 0, 1024: 4 5 6 7']);
});

test('a processor whose slow cores are named only', () => {
  const hybrid = { ...allowed('0-3'), '/sys/devices/cpu_atom/cpus': '2-3\n' };
  assert.deepEqual(texts(cpuGroups(reader(hybrid))), ['node 0, 1024: 0 1', 'node 0, 512: 2 3']);
});

test('a CPU that is offline is not there, though it is allowed', () => {
  const files = { ...desktop, ...online('0-2,4-7') };
  assert.deepEqual(texts(cpuGroups(reader(files))), ['node 0, 1024: 0,4 1,5 2,6 7']);
});

test('a container has the CPUs of its set, by the numbers of the machine', () => {
  assert.deepEqual(usableCpus(reader({ ...desktop, ...allowed('2-3,6') })), [2, 3, 6]);
  assert.deepEqual(texts(cpuGroups(reader({ ...desktop, ...allowed('2-3,6') }))), ['node 0, 1024: 2,6 3']);
});

test('files that make no sense are as good as none', () => {
  const files = {
    ...allowed('0-1'),
    ...online('all of them'),
    ...cpu(0, {
      'topology/core_cpus_list': '7-3',
      'topology/physical_package_id': '-1',
      'cache/index3/shared_cpu_list': '0,0',
      cpu_capacity: '1e9',
    }),
    '/sys/devices/system/node/has_cpu': '0-',
  };
  assert.deepEqual(texts(cpuGroups(reader(files))), ['node 0, 1024: 0 1']);
  assert.deepEqual(texts(cpuGroups(reader({}))), ['node 0, 1024: 0'], 'a process runs somewhere');
});

test('more CPUs than any host has are not all looked at', () => {
  assert.equal(usableCpus(reader(allowed('0-9999'))).length, limits.hostCpus);
});

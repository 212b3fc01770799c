import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { cpusOfGroups } from '../../protocol/cpu-topology.ts';
import { HostCpuReader } from './host-cpus.ts';

test('this machine has the CPUs that the kernel gives this process, each once', () => {
  const [, list = ''] = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  const { groups } = new HostCpuReader().read();
  const cpus = cpusOfGroups(groups).toSorted((one, other) => one - other);
  assert.equal(new Set(cpus).size, cpus.length);
  assert.equal(String(cpus[0]), /^[0-9]+/.exec(list)?.[0]);
});

test('what lies where is read once, and again when the CPUs are other ones', () => {
  let allowed = '0-1';
  const paths: string[] = [];
  const reader = new HostCpuReader((path) => {
    paths.push(path);
    return path === '/proc/self/status' ? `Cpus_allowed_list:\t${allowed}\n` : '';
  });
  const siblingsRead = (): number => paths.filter((path) => path.endsWith('core_cpus_list')).length;
  reader.read();
  reader.read();
  assert.equal(siblingsRead(), 2);
  allowed = '0-2';
  assert.equal(cpusOfGroups(reader.read().groups).length, 3);
  assert.equal(siblingsRead(), 5);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cpuQuota } from './quota.ts';

const quotaIn = (files: Readonly<Record<string, string>>): number => cpuQuota((path) => files[path] ?? '');
const base = '/sys/fs/cgroup';

test('without a limit there is none', () => {
  assert.equal(quotaIn({}), 0);
  assert.equal(quotaIn({ '/proc/self/cgroup': '0::/p4.slice\n', [`${base}/p4.slice/cpu.max`]: 'max 100000\n' }), 0);
});

test('the least of the groups on the way up holds', () => {
  const files = {
    '/proc/self/cgroup': '0::/p4.slice/p4-agent.service\n',
    [`${base}/p4.slice/cpu.max`]: '150000 100000\n',
    [`${base}/p4.slice/p4-agent.service/cpu.max`]: '400000 100000\n',
  };
  assert.equal(quotaIn(files), 1.5);
});

test('in a container its own root says it', () => {
  assert.equal(quotaIn({ '/proc/self/cgroup': '0::/\n', [`${base}/cpu.max`]: '200000 100000\n' }), 2);
});

test('version 1 of control groups says it in two files', () => {
  const cgroup = '4:memory:/box\n3:cpu,cpuacct:/box\n1:name=systemd:/box\n';
  const limited = {
    [`${base}/cpu/box/cpu.cfs_quota_us`]: '50000\n',
    [`${base}/cpu/box/cpu.cfs_period_us`]: '100000\n',
  };
  assert.equal(quotaIn({ '/proc/self/cgroup': cgroup, ...limited }), 0.5);
  const open = { ...limited, [`${base}/cpu/box/cpu.cfs_quota_us`]: '-1\n' };
  assert.equal(quotaIn({ '/proc/self/cgroup': cgroup, ...open }), 0);
});

test('files that make no sense limit nothing', () => {
  const files = { '/proc/self/cgroup': 'x\n0::relative\n0::/a\n', [`${base}/a/cpu.max`]: 'some 0\n' };
  assert.equal(quotaIn(files), 0);
});

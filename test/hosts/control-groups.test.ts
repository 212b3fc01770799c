import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemdGroups } from './control-groups.ts';

test("systemd's hierarchies are found where both kinds are mounted", () => {
  const mounts = [
    '22 1 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
    '34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
    '39 30 0:36 / /sys/fs/cgroup/systemd rw,relatime shared:9 - cgroup cgroup rw,xattr,name=systemd',
    '40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw',
  ].join('\n');
  assert.deepEqual(systemdGroups('9:name=systemd:/user\n4:memory:/x\n0::/\n', mounts), [
    '/sys/fs/cgroup/systemd/user',
    '/sys/fs/cgroup/unified',
  ]);
});

test('where there is only the second kind, that is it', () => {
  const mounts = '30 22 0:27 /user.slice /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate';
  assert.deepEqual(systemdGroups('0::/user.slice/session-1.scope\n', mounts), ['/sys/fs/cgroup/session-1.scope']);
  assert.deepEqual(systemdGroups('', ''), []);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fullestFolder, spaceScript } from './host-space.ts';

test('the file system with the least room is the one that is full', () => {
  const text = '7340032 /opt/p4\n4 /etc/p4\n4 /etc/p4/agent.json\n51200 /run/p4\n';
  assert.deepEqual(fullestFolder(text), { folder: '/etc/p4', freeBytes: 4096 });
  assert.equal(fullestFolder('df: not there\n'), null);
});

test('paths that the host names are looked at, whatever is in them', () => {
  const script = spaceScript(["mkdir: cannot create directory '/srv/a b; rm c': No space left on device"]);
  assert.match(script, /for folder in \/opt\/p4 \/etc\/p4 \/run\/p4 '\/srv\/a b; rm c'; do/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasEnded, type LockOwner } from './host-lock.ts';

const mine: LockOwner = { owner: 'ada@desk', pid: 7, since: '2026-01-01T00:00:00.000Z', token: 'b', origin: 'here' };
const former: LockOwner = { ...mine, pid: 5, token: 'a' };
const nobody = (): boolean => false;

test('a lock is taken over only from a run of the same operator, state folder and machine that is over', () => {
  assert.ok(hasEnded(former, mine, nobody));
  assert.ok(
    hasEnded({ ...former, pid: mine.pid }, mine, () => true),
    'its number went to this process',
  );
  assert.ok(!hasEnded(former, mine, (pid) => pid === former.pid), 'it runs');
  assert.ok(!hasEnded({ ...former, owner: 'bob@desk' }, mine, nobody));
  assert.ok(!hasEnded({ ...former, origin: 'elsewhere' }, mine, nobody), 'its process is none of this machine');
  assert.ok(!hasEnded({ ...former, origin: '' }, mine, nobody), 'it does not say where it runs');
});

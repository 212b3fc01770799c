import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOfEndedRun, type HostLockOwner } from './host-lock.ts';

const mine: HostLockOwner = {
  owner: 'ada@desk',
  process: { pid: 7, place: 'desk', boot: '1', start: '900' },
  since: '2026-01-01T00:00:00.000Z',
  token: 'b',
  origin: 'here',
};
const former: HostLockOwner = { ...mine, process: { ...mine.process, pid: 5, start: '800' }, token: 'a' };
/** Only this run runs. */
const running = async (pid: number): Promise<string | null> => Promise.resolve(pid === 7 ? '900' : null);
const isOver = (lock: HostLockOwner): Promise<boolean> => isOfEndedRun(lock, mine, running);

test('a lock is taken over only from a run of the same operator, state folder and machine that is over', async () => {
  assert.ok(await isOver(former));
  assert.ok(await isOver({ ...former, process: { ...former.process, pid: 7 } }), 'its number went to this process');
  assert.ok(!(await isOver(mine)), 'it runs');
  assert.ok(!(await isOver({ ...former, owner: 'bob@desk' })));
  assert.ok(!(await isOver({ ...former, origin: 'elsewhere' })));
  assert.ok(!(await isOver({ ...former, origin: '' })), 'it does not say with which state folder');
  assert.ok(!(await isOver({ ...former, process: { ...former.process, place: 'another' } })), 'none of this machine');
});

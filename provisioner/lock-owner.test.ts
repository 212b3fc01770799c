import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { test } from 'node:test';

import { hasEnded, lockOwner, ownIdentity, parseLockOwner, runningHere, type ProcessIdentity } from './lock-owner.ts';

const mine: ProcessIdentity = { pid: 7, place: 'desk', boot: 'now', start: '900' };
const theirs: ProcessIdentity = { ...mine, pid: 5, start: '800' };
const started = (start: string | null) => (): Promise<string | null> => Promise.resolve(start);

test('a process has ended when its number is free, another has it, or the machine has started again', async () => {
  assert.equal(await hasEnded(theirs, mine, started(null)), true);
  assert.equal(await hasEnded(theirs, mine, started('801')), true);
  assert.equal(await hasEnded({ ...theirs, boot: 'before' }, mine, started('800')), true);
  assert.equal(await hasEnded(theirs, mine, started('800')), false);
});

test('where nobody can know, it has not ended', async () => {
  assert.equal(await hasEnded({ ...theirs, place: 'other' }, mine, started(null)), false, 'another machine');
  assert.equal(await hasEnded({ ...theirs, place: 'other', boot: 'before' }, mine, started(null)), false);
  assert.equal(await hasEnded({ ...theirs, place: '' }, { ...mine, place: '' }, started(null)), false);
  assert.equal(await hasEnded(theirs, mine, started('')), false, 'the system does not say when it started');
  assert.equal(await hasEnded({ ...theirs, start: '' }, mine, started('800')), false);
});

test('a process of this machine is found while it runs, by when it started', async () => {
  const own = await ownIdentity();
  assert.equal(await runningHere(process.pid), own.start);
  assert.match(own.start, /^[1-9][0-9]*$/);
  const child = spawn('sleep', ['60']);
  const pid = child.pid ?? 0;
  const start = await runningHere(pid);
  assert.ok(start !== null && Number(start) >= Number(own.start), `${start} after ${own.start}`);
  assert.equal(await hasEnded({ ...own, pid, start }, own, runningHere), false);
  child.kill();
  await once(child, 'exit');
  assert.equal(await runningHere(pid), null);
  assert.equal(await hasEnded({ ...own, pid, start }, own, runningHere), true);
  assert.equal(await runningHere(spawnSync('true').pid), null);
});

test('an owner is read as it was written, and nothing else is one', async () => {
  const owner = await lockOwner('abc123');
  assert.deepEqual(parseLockOwner(JSON.stringify(owner)), owner);
  const wrong = ['', '{', '17', 'null', '{}', JSON.stringify({ ...owner, process: {} })];
  for (const text of [...wrong, JSON.stringify({ ...owner, token: '../x' })]) assert.equal(parseLockOwner(text), null);
});

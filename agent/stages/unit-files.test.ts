import assert from 'node:assert/strict';
import { test } from 'node:test';

import { endFacts, isInstanceName, isInUnit, pidOf, unitEndOf, unitName } from './unit-files.ts';

test('an instance has one form; what could name another unit or path is none', () => {
  assert.ok(isInstanceName('0123abcd.0.1'));
  assert.ok(isInstanceName('ffffffff.63.4294967295'));
  for (const name of ['', '0123abcd.0', '0123ABCD.0.1', '0123abcd.0.1.service', '../0123abcd.0.1', '0123abcd.0.1\n']) {
    assert.equal(isInstanceName(name), false, JSON.stringify(name));
  }
  assert.equal(unitName('p4-stage', '0123abcd.0.1'), 'p4-stage@0123abcd.0.1.service');
});

test('a process number is read when it is whole', () => {
  assert.equal(pidOf('4711\n'), 4711);
  for (const text of ['', '47', '0\n', '-1\n', '4711\n4712\n', 'x\n']) assert.equal(pidOf(text), null, text);
});

test('a unit’s end is told as a process’s end is', () => {
  assert.deepEqual(unitEndOf('success exited 0\n'), { result: 'success', status: 0, signal: null });
  assert.deepEqual(unitEndOf('exit-code exited 203\n'), { result: 'exit-code', status: 203, signal: null });
  assert.deepEqual(unitEndOf('signal killed KILL\n'), { result: 'signal', status: null, signal: 'SIGKILL' });
  assert.deepEqual(unitEndOf('core-dump dumped ABRT\n'), { result: 'core-dump', status: null, signal: 'SIGABRT' });
  assert.deepEqual(unitEndOf('resources none none\n'), { result: 'resources', status: null, signal: null });
  for (const text of ['', 'success exited 0', 'success\n', 'success exited 0 1\n']) assert.equal(unitEndOf(text), null);
});

test('an end has words for an error', () => {
  assert.deepEqual(endFacts({ result: 'signal', status: null, signal: 'SIGKILL' }), {
    exit: 'SIGKILL',
    result: 'signal',
  });
  assert.equal(endFacts({ result: 'exit-code', status: 203, signal: null }).exit, 'status 203');
});

test('a process belongs to a unit by its control groups, not by a part of their names', () => {
  const unit = 'p4-stage@0123abcd.0.1.service';
  assert.ok(isInUnit(`0::/p4.slice/${unit}\n`, unit));
  assert.ok(isInUnit(`12:memory:/\n1:name=systemd:/p4.slice/${unit}/worker\n`, unit));
  assert.equal(isInUnit(`0::/p4.slice/${unit.replace('.1.', '.11.')}\n`, unit), false);
  assert.equal(isInUnit('0::/user.slice/session-1.scope\n', unit), false);
});

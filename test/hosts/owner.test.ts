import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { isAbandoned, newOwnedName } from './owner.ts';

test('a name is abandoned once its process has ended, and not before', async () => {
  const { name } = newOwnedName();
  assert.equal(isAbandoned(name), false);
  const child = spawn(process.execPath, ['--eval', ''], { stdio: 'ignore' });
  await once(child, 'exit');
  assert.equal(isAbandoned(name.replace(String(process.pid), String(child.pid))), true);
});

test('a pid that somebody else has got by now does not count', () => {
  const { name, id } = newOwnedName();
  assert.equal(isAbandoned(name.replace(/-\d+-[0-9a-f]+$/, `-1-${id}`)), true);
});

test('names of others are nobody to judge', () => {
  for (const name of ['p4-hosts', 'p4-hosts-1-2', 'p4-hosts-x-2-ab', '0123456789abcdef']) {
    assert.equal(isAbandoned(name), false, name);
  }
});

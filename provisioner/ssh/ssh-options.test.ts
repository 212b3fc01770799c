import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Command } from 'commander';

import { P4Error } from '../../protocol/errors.ts';
import { addSshOptions, readSshOptions, type SshOptionValues } from './ssh-options.ts';

const print = `SHA256:${'aB3+/'.repeat(8)}abc`;

test('host keys are accepted one by one, or all new ones', () => {
  const command = addSshOptions(new Command('deploy').exitOverride());
  command.parse(['--accept-host-key', `ant=${print}`, '--accept-host-key', `gate.example.net=${print}`], {
    from: 'user',
  });
  assert.deepEqual(readSshOptions(command.opts<SshOptionValues>()), {
    fingerprints: [
      { host: 'ant', fingerprint: print },
      { host: 'gate.example.net', fingerprint: print },
    ],
    isNewAccepted: false,
  });
  assert.deepEqual(readSshOptions({ acceptNewHostKeys: true }), { fingerprints: [], isNewAccepted: true });
  assert.deepEqual(readSshOptions({}), { fingerprints: [], isNewAccepted: false });
});

test('what is no fingerprint is refused', () => {
  for (const value of ['ant', `ant=MD5:${'0'.repeat(32)}`, `=${print}`, 'ant=SHA256:short']) {
    assert.throws(
      () => readSshOptions({ acceptHostKey: [value] }),
      (error: unknown) => error instanceof P4Error && error.code === 'INVALID_ARGUMENT',
    );
  }
});

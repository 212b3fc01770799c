import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { checkSshWay, type SshWay } from './ssh-way.ts';

const gate = { label: 'gate', address: 'gate.example.net', port: 22, user: null, key: { kind: 'agent' } } as const;
const ant = {
  label: 'ant',
  address: 'fe80::1%eth0',
  port: 2222,
  user: 'ops',
  key: { kind: 'file', path: '/k' },
} as const;

suite('the way that fleet.json keeps', () => {
  test('is one that was written', () => {
    const ways: readonly SshWay[] = [[gate, ant], [ant]];
    for (const way of ways) assert.ok(checkSshWay(JSON.parse(JSON.stringify(way))), JSON.stringify(checkSshWay.errors));
  });

  test('is nothing else: no empty way, no relative key, and nothing that might be a secret', () => {
    const wrong: readonly unknown[] = [
      [],
      [{ ...ant, address: 'two words' }],
      [{ ...ant, port: 0 }],
      [{ ...ant, key: { kind: 'file', path: 'k' } }],
      [{ ...ant, key: { kind: 'agent', path: '/k' } }],
      [{ ...ant, passphrase: 'open sesame' }],
      Array.from({ length: 9 }, () => gate),
    ];
    for (const way of wrong) assert.equal(checkSshWay(way), false, JSON.stringify(way));
  });
});

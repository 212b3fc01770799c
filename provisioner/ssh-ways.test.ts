import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { hostName } from '../protocol/ids.ts';
import { namedFailure, throughText } from './ssh-ways.ts';

const login = (label: string) =>
  ({ label, address: `${label}.example`, port: 22, user: null, key: { kind: 'agent' } }) as const;
const behind = { name: hostName('ant'), ssh: [login('door'), login('gate'), login('ant')] };

suite('a way that fails', () => {
  test('names the machine that failed, the host that was wanted, and what is between', () => {
    const error = new P4Error('HOST_UNREACHABLE', { host: 'gate', why: 'the port is closed' });
    const named = namedFailure(error, behind);
    assert.equal(named.code, 'HOST_UNREACHABLE');
    assert.deepEqual(named.facts, { host: 'gate', why: 'the port is closed', agentOf: 'ant', through: 'door, gate' });
    assert.equal(named.cause, error);
  });

  test('names the command that takes the option which accepts a key', () => {
    const error = new P4Error('HOST_KEY_CHANGED', { host: 'gate', accept: '--accept-host-key gate=SHA256:x' });
    const { accept } = namedFailure(error, behind).facts;
    assert.equal(accept, 'npm run deploy -- INVENTORY --accept-host-key gate=SHA256:x');
  });

  test('says where jumps are from that the inventory does not name', () => {
    assert.equal(throughText([login('ant')]), "the jumps of this machine's ssh configuration");
  });
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { withKey } from './host-trust.ts';
import { askedAlgorithms } from './host-key-algorithms.ts';
import {
  fingerprint,
  hostKey,
  knownHostsLine,
  knownHostsName,
  knownTypes,
  parseKnownHosts,
  verdictOf,
  type HostKey,
} from './known-hosts.ts';

/** A key's blob of a type, with a body that tells keys apart. */
function keyOf(type: string, body: string): HostKey {
  const field = (text: string): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    return Buffer.concat([length, Buffer.from(text)]);
  };
  return hostKey(Buffer.concat([field(type), field(body)]));
}

const mine = keyOf('ssh-ed25519', 'mine');
const other = keyOf('ssh-ed25519', 'other');
const rsa = keyOf('ssh-rsa', 'rsa');

const verdict = (text: string, name: string, key = mine): string =>
  verdictOf(parseKnownHosts(text, 'file'), name, key).kind;

suite('known hosts', () => {
  test('a host is known by its name, in a list, by wildcard, and with its port', () => {
    assert.equal(verdict(knownHostsLine('ant', mine), 'ant'), 'known');
    assert.equal(verdict(knownHostsLine('bee,ant,10.0.0.1', mine), '10.0.0.1'), 'known');
    assert.equal(verdict(knownHostsLine('*.example.net', mine), 'ant.example.net'), 'known');
    assert.equal(verdict(knownHostsLine('ant?', mine), 'ants'), 'known');
    assert.equal(verdict(knownHostsLine('[ant]:2222', mine), knownHostsName('ANT', 2222)), 'known');
    assert.equal(knownHostsName('Ant', 22), 'ant');
  });

  test('another port, another name, and what is only part of a name are other hosts', () => {
    assert.equal(verdict(knownHostsLine('ant', mine), '[ant]:2222'), 'unknown');
    assert.equal(verdict(knownHostsLine('ant', mine), 'ants'), 'unknown');
    assert.equal(verdict(knownHostsLine('a.t', mine), 'ant'), 'unknown');
    assert.equal(verdict(knownHostsLine('*.example.net,!ant.example.net', mine), 'ant.example.net'), 'unknown');
  });

  test('a hashed name that ssh-keygen made is found', () => {
    const folder = mkdtempSync(join(tmpdir(), 'p4-known-'));
    try {
      const path = join(folder, 'known_hosts');
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'key')]);
      const [type = '', blob = ''] = readFileSync(join(folder, 'key.pub'), 'utf8').split(' ');
      writeFileSync(path, `[ant.example.net]:2222 ${type} ${blob}\n`);
      execFileSync('ssh-keygen', ['-q', '-H', '-f', path], { stdio: 'ignore' });
      const text = readFileSync(path, 'utf8');
      assert.match(text, /^\|1\|/);
      const key = hostKey(Buffer.from(blob, 'base64'));
      assert.equal(verdict(text, '[ant.example.net]:2222', key), 'known');
      assert.equal(verdict(text, 'ant.example.net', key), 'unknown');
      const printed = execFileSync('ssh-keygen', ['-l', '-f', join(folder, 'key.pub')], { encoding: 'utf8' });
      assert.equal(printed.split(' ')[1], fingerprint(key.blob));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('another key than the known ones is a changed one, of whatever kind it is', () => {
    assert.equal(verdict(knownHostsLine('ant', other), 'ant'), 'changed');
    assert.equal(verdict(knownHostsLine('ant', rsa), 'ant'), 'changed');
    const both = `${knownHostsLine('ant', other)}\n${knownHostsLine('ant', mine)}\n`;
    assert.equal(verdict(both, 'ant'), 'known');
  });

  test('a revoked key is refused, even where another line knows it', () => {
    const text = `${knownHostsLine('ant', mine)}\n@revoked ${knownHostsLine('*', mine)}\n`;
    assert.equal(verdict(text, 'ant'), 'revoked');
    assert.equal(verdict(text, 'ant', other), 'changed');
    assert.equal(verdict(`@revoked ${knownHostsLine('*', mine)}`, 'ant', other), 'unknown');
  });

  test('comments, authorities of certificates and broken lines know nobody', () => {
    const lines = [
      '# ant',
      '',
      'ant ssh-ed25519',
      `ant ssh-rsa ${mine.blob.toString('base64')}`,
      `@cert-authority ${knownHostsLine('*', mine)}`,
      `|2|x|y ${knownHostsLine('', mine)}`,
    ];
    assert.deepEqual(parseKnownHosts(lines.join('\n'), 'file'), []);
  });

  test('a host is asked for the kinds of key that are known first, and for all others after them', () => {
    const text = `${knownHostsLine('ant', rsa)}\n@revoked ${knownHostsLine('ant', mine)}\n`;
    const types = knownTypes(parseKnownHosts(text, 'file'), 'ant');
    assert.deepEqual(types, ['ssh-rsa']);
    assert.deepEqual(askedAlgorithms(types).slice(0, 3), ['rsa-sha2-512', 'rsa-sha2-256', 'ssh-ed25519']);
    assert.equal(askedAlgorithms([])[0], 'ssh-ed25519');
    assert.equal(new Set(askedAlgorithms(types)).size, 6);
  });

  test('an accepted key takes the place of the former one of its kind, and of no other', () => {
    const text = `${knownHostsLine('ant', other)}\n${knownHostsLine('ant', rsa)}\n${knownHostsLine('bee', other)}\n`;
    const now = withKey(text, 'ant', mine);
    assert.deepEqual(now.split('\n'), [
      knownHostsLine('ant', rsa),
      knownHostsLine('bee', other),
      knownHostsLine('ant', mine),
      '',
    ]);
  });
});

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { absolutePath, OperatorConfig, type Operator } from './operator-config.ts';

const operator: Operator = { home: '/home/ops', user: 'ops', environment: { KEYS: '/keys', SOCK: '/run/agent' } };
const of = (text: string, alias: string) => new OperatorConfig(text, operator).of(alias);

suite('the ssh configuration of the operator', () => {
  test('nothing said is nothing found', () => {
    assert.deepEqual(of('', 'ant'), {
      hostName: 'ant',
      port: null,
      user: null,
      identityFiles: [],
      isIdentitiesOnly: false,
      agent: { kind: 'default' },
      proxyJump: null,
      userKnownHostsFiles: [],
      globalKnownHostsFiles: [],
      hostKeyAlias: null,
    });
  });

  test('the first word counts, keys add up, names are taken in any case', () => {
    const found = of(
      `
host ant
  hostname %h.example.net
  PORT 2222
  User first
  IdentityFile ~/.ssh/%h-%r
  IdentitiesOnly yes
Host a* !abba
  User second
  IdentityFile \${KEYS}/%u
  UserKnownHostsFile /dev/null ~/hosts
  ProxyJump gate
Host *
  IdentityAgent $SOCK
`,
      'ant',
    );
    assert.equal(found.hostName, 'ant.example.net');
    assert.equal(found.port, 2222);
    assert.equal(found.user, 'first');
    assert.deepEqual(found.identityFiles, ['/home/ops/.ssh/ant.example.net-first', '/keys/ops']);
    assert.equal(found.isIdentitiesOnly, true);
    assert.deepEqual(found.agent, { kind: 'socket', path: '/run/agent' });
    assert.equal(found.proxyJump, 'gate');
    assert.deepEqual(found.userKnownHostsFiles, ['/dev/null', '/home/ops/hosts']);
  });

  test('a negated pattern keeps its host out, and none means none', () => {
    const text = 'Host a* !abba\n  User second\n  ProxyJump none\n  IdentityAgent none\n  IdentityFile none\n';
    assert.equal(of(text, 'abba').user, null);
    const found = of(text, 'ant');
    assert.deepEqual(
      [found.user, found.proxyJump, found.agent.kind, found.identityFiles],
      ['second', null, 'none', []],
    );
  });

  test('what cannot be followed is refused, not left out', () => {
    const refused = (text: string): void => {
      assert.throws(
        () => of(text, 'ant'),
        (error: unknown) => error instanceof P4Error && error.code === 'SSH_CONFIG_UNUSABLE',
      );
    };
    refused('Host ant\n  ProxyCommand nc gate 22\n');
    refused('Host ant\n  Port many\n');
    assert.equal(of('Host ant\n  ProxyCommand none\n', 'ant').proxyJump, null);
    assert.equal(of('Host ant\n  ProxyCommand nc gate 22\n', 'bee').proxyJump, null);
  });

  test('included files are read in their places, and a circle is refused', async () => {
    const home = mkdtempSync(join(tmpdir(), 'p4-config-'));
    try {
      mkdirSync(join(home, '.ssh/config.d'), { recursive: true });
      writeFileSync(join(home, '.ssh/config'), 'Include config.d/*.conf\nHost *\n  User last\n  Port 99\n');
      writeFileSync(join(home, '.ssh/config.d/ant.conf'), 'Host ant\n  User ants\n');
      writeFileSync(join(home, '.ssh/config.d/bee.txt'), 'Host ant\n  Port 1\n');
      const config = await OperatorConfig.read({ ...operator, home });
      assert.deepEqual([config.of('ant').user, config.of('ant').port, config.of('bee').user], ['ants', 99, 'last']);
      writeFileSync(join(home, '.ssh/config.d/ant.conf'), 'Include ~/.ssh/config\n');
      await assert.rejects(
        OperatorConfig.read({ ...operator, home }),
        (error: unknown) => error instanceof P4Error && error.code === 'SSH_CONFIG_UNUSABLE',
      );
    } finally {
      rmSync(home, { recursive: true });
    }
  });

  test('paths are absolute, from the home folder, or from a folder', () => {
    const from = { home: '/home/ops', folder: '/fleet' };
    assert.equal(absolutePath('/a', from), '/a');
    assert.equal(absolutePath('~/a', from), '/home/ops/a');
    assert.equal(absolutePath('a/b', from), '/fleet/a/b');
    assert.equal(absolutePath('~other/a', from), '/fleet/~other/a');
  });
});

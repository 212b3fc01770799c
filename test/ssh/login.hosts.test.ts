/** Logging in, against a real sshd and a real ssh agent. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { eventually } from '../fixture/eventually.ts';
import { failure } from '../fixture/expected-failure.ts';
import { OperatorHome, ScriptedPrompt, type ContextChoice } from '../fixture/operator-home.ts';
import { makeKey, Sshd, type KeyPair } from '../fixture/sshd.ts';
import { fingerprint } from '../../provisioner/ssh/known-hosts.ts';
import { openSession, openSessions } from '../../provisioner/ssh/session-opening.ts';
import type { InventoryHost } from '../../protocol/inventory.ts';

const printOf = (line: string): string => fingerprint(Buffer.from(line.split(' ')[1] ?? '', 'base64'));

suite('login', () => {
  const home = new OperatorHome();
  let key: KeyPair;
  let locked: KeyPair;
  let ecdsa: KeyPair;
  let rsa: KeyPair;
  let stranger: KeyPair;
  let sshd: Sshd;
  let inner: Sshd;

  before(async () => {
    key = makeKey(home.path('key'));
    locked = makeKey(home.path('locked'), 'ed25519', 'open sesame');
    ecdsa = makeKey(home.path('ecdsa'), 'ecdsa');
    rsa = makeKey(home.path('rsa'), 'rsa');
    stranger = makeKey(home.path('stranger'));
    sshd = await Sshd.start({
      folder: home.path('sshd'),
      authorized: [key, locked, ecdsa, rsa],
      hostKeys: ['ed25519', 'rsa', 'ecdsa'],
    });
    inner = await Sshd.start({ folder: home.path('inner'), authorized: [ecdsa] });
  });
  after(async () => {
    await sshd.stop();
    await inner.stop();
    home.remove();
  });

  const opened = async (host: InventoryHost, choice: Partial<ContextChoice> = {}): Promise<string> => {
    const session = await openSession(host, await home.context({ hosts: [host], ...choice }));
    try {
      const { status, stdout } = await session.run({ script: 'id -un' });
      assert.equal(status, 0);
      return stdout.toString().trim();
    } finally {
      await session.close();
    }
  };
  const file = (pair: KeyPair) => ({ kind: 'file', path: pair.path }) as const;
  const ant = (pair: KeyPair): InventoryHost => home.host({ name: 'ant', sshd, key: file(pair) });

  test('an unknown host key is shown and refused, and nothing is written', async () => {
    const error = await failure(opened(ant(key)), 'HOST_KEY_UNKNOWN');
    const print = printOf(sshd.hostKeyLine('ed25519'));
    assert.equal(error.facts['fingerprint'], print);
    assert.equal(error.facts['type'], 'ssh-ed25519');
    assert.equal(error.facts['accept'], `--accept-host-key ant=${print}`);
    assert.throws(() => home.acceptedKeys());
  });

  test('the fingerprint of another host or another key does not open the door', async () => {
    const print = printOf(sshd.hostKeyLine('ed25519'));
    const elsewhere = { fingerprints: [{ host: 'bee', fingerprint: print }] };
    const stray = await failure(opened(ant(key), { acceptance: elsewhere }), 'INVALID_ARGUMENT');
    assert.deepEqual(stray.facts, { option: '--accept-host-key', found: 'bee', expected: 'one of ant' });
    const another = printOf(sshd.hostKeyLine('rsa'));
    const wrong = { fingerprints: [{ host: 'ant', fingerprint: another }] };
    for (const isNewAccepted of [false, true]) {
      const error = await failure(
        opened(ant(key), { acceptance: { ...wrong, isNewAccepted } }),
        'HOST_KEY_NOT_ACCEPTED',
      );
      assert.deepEqual([error.facts['shown'], error.facts['accepted']], [print, [another]]);
      assert.equal(error.facts['accept'], `--accept-host-key ant=${print}`);
    }
    assert.throws(() => home.acceptedKeys());
  });

  test('an accepted host key is kept and known from then on', async () => {
    const print = printOf(sshd.hostKeyLine('ed25519'));
    const acceptance = { fingerprints: [{ host: 'ant', fingerprint: print }] };
    assert.equal(await opened(ant(key), { acceptance }), 'root');
    assert.match(home.acceptedKeys(), new RegExp(`^\\[127.0.0.1\\]:${sshd.port} ssh-ed25519 `));
    assert.equal(await opened(ant(key)), 'root');
  });

  test('new host keys may be accepted without a look, but never changed ones', async () => {
    const bee = home.host({ name: 'bee', sshd: inner, key: file(ecdsa) });
    assert.equal(await opened(bee, { acceptance: { isNewAccepted: true } }), 'root');
    const other = new OperatorHome();
    try {
      const [type = '', blob = ''] = sshd.hostKeyLine('rsa').split(' ');
      other.write('.ssh/known_hosts', `[127.0.0.1]:${inner.port} ${type} ${blob}\n`);
      const context = await other.context({ hosts: [bee], acceptance: { isNewAccepted: true } });
      const error = await failure(openSession(bee, context), 'HOST_KEY_CHANGED');
      assert.equal(error.facts['new'], printOf(inner.hostKeyLine('ed25519')));
      assert.match(String(error.facts['known']), new RegExp(printOf(sshd.hostKeyLine('rsa')).replace(/[+]/g, '\\+')));
    } finally {
      other.remove();
    }
  });

  test('a server with several keys is asked for the kind that is known', async () => {
    for (const kind of ['rsa', 'ecdsa'] as const) {
      const other = new OperatorHome();
      try {
        other.know(sshd, kind);
        const session = await openSession(ant(key), await other.context({ hosts: [ant(key)] }));
        await session.close();
      } finally {
        other.remove();
      }
    }
  });

  test('keys of every kind log in', async () => {
    for (const pair of [key, ecdsa, rsa]) assert.equal(await opened(ant(pair)), 'root');
  });

  test('an encrypted key is asked for once, however many hosts it opens', async () => {
    const prompt = new ScriptedPrompt(['wrong', 'open sesame']);
    const hosts = [ant(locked), { ...ant(locked), name: home.host({ name: 'bee', sshd }).name }];
    const results = await openSessions(hosts, await home.context({ hosts, prompt }));
    for (const result of results) {
      assert.ok(result.kind === 'open');
      await result.session.close();
    }
    assert.deepEqual(
      prompt.questions.map((question) => question.replace(locked.path, 'KEY')),
      ['Passphrase of the key KEY', 'Passphrase of the key KEY (the last one is wrong)'],
    );
  });

  test('without a terminal an encrypted key is a clear error', async () => {
    const error = await failure(opened(ant(locked)), 'SECRET_NOT_GIVEN');
    assert.match(error.message, /ssh agent/);
  });

  test('a key that others may read, and one that is not there, are named', async () => {
    const bare = makeKey(home.path('bare'));
    execFileSync('chmod', ['644', bare.path]);
    const error = await failure(opened(ant(bare)), 'SSH_KEY_UNUSABLE');
    assert.match(error.message, /chmod 600/);
    await failure(opened(ant({ ...bare, path: home.path('nowhere') })), 'SSH_KEY_UNUSABLE');
  });

  test('a refused login names the keys that were tried', async () => {
    const error = await failure(opened(ant(stranger)), 'HOST_UNREACHABLE');
    assert.match(String(error.facts['why']), /refuses the login of root/);
    assert.deepEqual(error.facts['keys'], [`${printOf(stranger.publicLine)} from ${stranger.path}`]);
  });

  test('the ssh agent logs in, also with a key whose file is encrypted', async () => {
    const socket = join(home.folder, 'agent');
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
    const gone = new Promise((resolve) => agent.once('exit', resolve));
    try {
      const add = (path: string): void => {
        const environment = {
          ...process.env,
          SSH_AUTH_SOCK: socket,
          SSH_ASKPASS: home.path('answer'),
          SSH_ASKPASS_REQUIRE: 'force',
        };
        execFileSync('ssh-add', ['-q', path], { env: environment, stdio: 'ignore' });
      };
      home.write('answer', '#!/bin/sh\necho "open sesame"\n', 0o700);
      await eventually(() => execFileSync('ls', [home.folder]).toString().includes('agent'), {
        what: 'the agent listens',
      });
      add(locked.path);
      const viaAgent = home.host({ name: 'ant', sshd, key: { kind: 'agent' } });
      assert.equal(await opened(viaAgent, { agentSocket: socket }), 'root');
      const prompt = new ScriptedPrompt();
      assert.equal(await opened(ant(locked), { agentSocket: socket, prompt }), 'root');
      assert.deepEqual(prompt.questions, []);
      execFileSync('ssh-add', ['-q', '-D'], { env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'ignore' });
      for (const pair of [ecdsa, rsa]) {
        add(pair.path);
        assert.equal(await opened(viaAgent, { agentSocket: socket }), 'root');
        execFileSync('ssh-add', ['-q', '-D'], { env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'ignore' });
      }
    } finally {
      agent.kill();
      await gone;
    }
  });

  test('an agent that is not there is told, not waited for', async () => {
    const host = home.host({ name: 'ant', sshd, key: { kind: 'agent' } });
    const error = await failure(opened(host, { agentSocket: home.path('nobody') }), 'HOST_UNREACHABLE');
    assert.match(error.message, /no ssh agent answers/);
  });

  test('a jump host is passed with a key of its own, and closed behind the last', async () => {
    home.know(sshd);
    home.know(inner);
    const gate = home.host({ name: 'gate', sshd, key: file(key) });
    const jump = { kind: 'host', host: gate.name } as const;
    const hosts = ['bee', 'cicada'].map((name) => home.host({ name, sshd: inner, key: file(ecdsa), jump }));
    const context = await home.context({ hosts: [gate, ...hosts] });
    const results = await openSessions(hosts, context);
    for (const result of results) {
      assert.ok(result.kind === 'open');
      const { stdout } = await result.session.run({ script: 'echo "$SSH_CONNECTION"' });
      assert.match(stdout.toString(), new RegExp(` ${inner.port}\n$`));
    }
    // Established connections to the jump host's port, from this side.
    const port = sshd.port.toString(16).toUpperCase().padStart(4, '0');
    const isToGate = new RegExp(`^ *\\d+: [0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:${port} 01 `);
    const connections = (): number =>
      readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .filter((line) => isToGate.test(line)).length;
    assert.equal(connections(), 1);
    for (const result of results) if (result.kind === 'open') await result.session.close();
    await eventually(() => connections() === 0, { what: 'the connection to the jump host is closed' });
  });

  test('a jump machine, and a jump of the ssh configuration by its alias', async () => {
    const target = { address: '127.0.0.1', port: sshd.port, user: 'root', key: file(key) } as const;
    const direct = home.host({ name: 'bee', sshd: inner, key: file(ecdsa), jump: { kind: 'machine', target } });
    assert.equal(await opened(direct), 'root');
    home.write(
      '.ssh/config',
      [
        'Host gate',
        '  HostName 127.0.0.1',
        `  Port ${sshd.port}`,
        '  User root',
        '  IdentityFile ~/key',
        'Host inside',
        '  HostName 127.0.0.1',
        `  Port ${inner.port}`,
        '  ProxyJump gate',
        '  User root',
        '  IdentityFile ~/ecdsa',
        '',
      ].join('\n'),
    );
    const byAlias = home.host({ name: 'bee', sshd: { port: 22 }, address: 'inside', user: null });
    assert.equal(await opened(byAlias), 'root');
  });

  test('what keeps a host from being reached is said in plain words', async () => {
    const closed = home.host({ name: 'ant', sshd: { port: 1 }, key: file(key) });
    assert.match((await failure(opened(closed), 'HOST_UNREACHABLE')).message, /the port is closed/);
    const unnamed = home.host({ name: 'ant', sshd, key: file(key), address: 'no-such-host.invalid' });
    assert.match((await failure(opened(unnamed), 'HOST_UNREACHABLE')).message, /the name/);
    const gate = home.host({ name: 'gate', sshd, key: file(stranger) });
    const behind = home.host({ name: 'bee', sshd: inner, key: file(ecdsa), jump: { kind: 'host', host: gate.name } });
    const error = await failure(opened(behind, { hosts: [gate, behind] }), 'HOST_UNREACHABLE');
    assert.equal(error.facts['host'], 'gate');
    assert.equal(error.facts['role'], 'jump host');
    const beyond = home.host({
      name: 'bee',
      sshd: { port: 1 },
      key: file(ecdsa),
      jump: { kind: 'host', host: gate.name },
    });
    const open = { ...gate, connection: { ...gate.connection, key: file(key) } };
    assert.match((await failure(opened(beyond, { hosts: [open, beyond] }), 'HOST_UNREACHABLE')).message, /gate cannot/);
  });

  test('a signal ends an opening', async () => {
    const controller = new AbortController();
    const work = opened(ant(key), { signal: controller.signal });
    controller.abort(new P4Error('CANCELLED', { by: 'test' }));
    await failure(work, 'CANCELLED');
  });
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { hostName } from '../../protocol/ids.ts';
import type { Connection, InventoryHost } from '../../protocol/inventory.ts';
import { OperatorConfig, type Operator } from './operator-config.ts';
import { loginsTo, routeKey, routeOf, routeTo, type Hop } from './route.ts';

const operator: Operator = { home: '/home/ops', user: 'ops', environment: { SSH_AUTH_SOCK: '/run/agent' } };

function host(name: string, connection: Partial<Connection> = {}): InventoryHost {
  return {
    name: hostName(name),
    groups: [],
    connection: {
      address: `${name}.example.net`,
      port: 22,
      user: null,
      key: { kind: 'agent' },
      become: { kind: 'none' },
      jump: null,
      ...connection,
    },
    variables: {
      advertise: { kind: 'measured' },
      gpus: { kind: 'all' },
      cpus: null,
      stateFolder: '/var/lib/p4',
      ports: { agent: 7400, metrics: 7401, bridge: 19_000 },
    },
  };
}

function route(to: InventoryHost, config = '', others: readonly InventoryHost[] = []): readonly Hop[] {
  const said = new OperatorConfig(config, operator);
  const inventory = { hosts: [to, ...others], monitoring: null };
  return routeTo(to, { inventory, inventoryFolder: '/fleet', operator, configured: said.of.bind(said) });
}

const places = (hops: readonly Hop[]): readonly string[] =>
  hops.map(({ label, user, address, port }) => `${label}: ${user}@${address}:${port}`);

suite('the way to a host', () => {
  test('the inventory comes first, the ssh configuration fills in, then what ssh itself takes', () => {
    const config = 'Host ant.example.net\n  HostName 10.0.0.1\n  Port 2222\n  User admin\n';
    assert.deepEqual(places(route(host('ant'))), ['ant: ops@ant.example.net:22']);
    assert.deepEqual(places(route(host('ant'), config)), ['ant: admin@10.0.0.1:2222']);
    assert.deepEqual(places(route(host('ant', { user: 'root', port: 4 }), config)), ['ant: root@10.0.0.1:4']);
  });

  test('a key file is the only key; else the agent’s and the usual files', () => {
    const [file] = route(host('ant', { key: { kind: 'file', path: 'keys/ant' } }));
    assert.deepEqual(file?.keys, {
      files: ['/fleet/keys/ant'],
      isRequired: true,
      isOnlyFiles: true,
      agentSocket: '/run/agent',
    });
    const [usual] = route(host('ant'));
    assert.deepEqual(
      usual?.keys.files,
      ['id_ed25519', 'id_ecdsa', 'id_rsa'].map((name) => `/home/ops/.ssh/${name}`),
    );
    assert.equal(usual.keys.isOnlyFiles, false);
    const [said] = route(host('ant'), 'IdentityFile ~/k\nIdentitiesOnly yes\nIdentityAgent none\n');
    assert.deepEqual(said?.keys, { files: ['/home/ops/k'], isRequired: false, isOnlyFiles: true, agentSocket: null });
  });

  test('a jump goes over another host as that one is reached, or over a machine', () => {
    const gate = host('gate', {
      user: 'guest',
      jump: { kind: 'machine', target: { address: 'door', port: 23, user: null, key: { kind: 'agent' } } },
    });
    const ant = host('ant', { jump: { kind: 'host', host: gate.name } });
    assert.deepEqual(places(route(ant, '', [gate])), [
      'door: ops@door:23',
      'gate: guest@gate.example.net:22',
      'ant: ops@ant.example.net:22',
    ]);
  });

  test('a ProxyJump is followed where the inventory has no jump, with the jumps of its first machine', () => {
    const config = [
      'Host ant.example.net\n  ProxyJump me@one:1,[fe80::1]:2',
      'Host one\n  HostName 10.0.0.1\n  ProxyJump zero',
      'Host zero\n  User nobody',
    ].join('\n');
    assert.deepEqual(places(route(host('ant'), config)), [
      'zero: nobody@zero:22',
      'one: me@10.0.0.1:1',
      'fe80::1: ops@fe80::1:2',
      'ant: ops@ant.example.net:22',
    ]);
    const bee = host('bee');
    const over = host('ant', { jump: { kind: 'host', host: bee.name } });
    assert.deepEqual(places(route(over, config, [bee])), [
      'bee: ops@bee.example.net:22',
      'ant: ops@ant.example.net:22',
    ]);
  });

  test('what is kept of it leads the same way, with key files found from anywhere', () => {
    const target = { address: 'door', port: 23, user: null, key: { kind: 'file', path: 'keys/door' } } as const;
    const gate = host('gate', { user: 'guest', jump: { kind: 'machine', target } });
    const ant = host('ant', { jump: { kind: 'host', host: gate.name }, key: { kind: 'file', path: '~/ant' } });
    const said = new OperatorConfig('Host door\n  User porter\n  ProxyJump zero\n', operator);
    const rules = { operator, configured: said.of.bind(said) };
    const map = { ...rules, inventory: { hosts: [ant, gate], monitoring: null }, inventoryFolder: '/fleet' };
    const kept = loginsTo(ant, map);
    assert.deepEqual(
      kept.map(({ label, user, key }) => [label, user, key]),
      [
        ['door', null, { kind: 'file', path: '/fleet/keys/door' }],
        ['gate', 'guest', { kind: 'agent' }],
        ['ant', null, { kind: 'file', path: '/home/ops/ant' }],
      ],
    );
    assert.deepEqual(routeOf(kept, rules), routeTo(ant, map));
    assert.deepEqual(places(routeOf(kept, rules)).slice(0, 2), ['zero: ops@zero:22', 'door: porter@door:23']);
  });

  test('a circle is refused', () => {
    const refused = (work: () => unknown): void => {
      assert.throws(work, (error: unknown) => error instanceof P4Error && error.code === 'SSH_CONFIG_UNUSABLE');
    };
    refused(() =>
      route(host('ant'), 'Host one\n  ProxyJump two\nHost two\n  ProxyJump one\nHost ant*\n  ProxyJump one\n'),
    );
    refused(() => route(host('ant'), 'Host *\n  HostName same\n  ProxyJump ant.example.net\n'));
    refused(() => route(host('ant'), 'Host ant*\n  ProxyJump a@b@:x\n'));
  });

  test('known host keys are looked for under the address and port, or the alias', () => {
    assert.equal(route(host('ant', { port: 4 }))[0]?.knownAs, '[ant.example.net]:4');
    assert.equal(route(host('ant'), 'Host *\n  HostKeyAlias Ants\n')[0]?.knownAs, 'ants');
    assert.deepEqual(route(host('ant'), 'UserKnownHostsFile ~/k\nGlobalKnownHostsFile /k\n')[0]?.knownHostsFiles, [
      '/home/ops/k',
      '/k',
    ]);
  });

  test('connections are shared only where everything is the same', () => {
    const one = routeKey(route(host('ant')));
    assert.equal(one, routeKey(route(host('ant'))));
    assert.notEqual(one, routeKey(route(host('ant', { user: 'root' }))));
    assert.notEqual(one, routeKey(route(host('ant', { key: { kind: 'file', path: '/k' } }))));
  });
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { faultsText } from './fault.ts';
import { parseInventory } from './inventory-document.ts';
import type { Inventory, InventoryHost } from './inventory.ts';

function inventoryIn(text: string): Inventory {
  const reading = parseInventory(text, 'i.yaml');
  assert(reading.kind === 'inventory', reading.kind === 'faults' ? faultsText(reading.faults) : '');
  return reading.inventory;
}

function faultsIn(text: string): string {
  const reading = parseInventory(text, 'i.yaml');
  assert(reading.kind === 'faults', 'the inventory is wrong');
  return faultsText(reading.faults);
}

function hostIn(text: string, name: string): InventoryHost {
  const host = inventoryIn(text).hosts.find((candidate) => candidate.name === name);
  assert(host !== undefined);
  return host;
}

test('an address is enough', () => {
  assert.deepEqual(inventoryIn('hosts:\n  ant: { address: 192.0.2.1 }\n'), {
    hosts: [
      {
        name: 'ant',
        groups: [],
        connection: {
          address: '192.0.2.1',
          port: 22,
          user: null,
          key: { kind: 'agent' },
          become: { kind: 'none' },
          jump: null,
        },
        variables: {
          advertise: { kind: 'measured' },
          gpus: { kind: 'all' },
          cpus: null,
          stateFolder: '/var/lib/p4',
          ports: { agent: 7400, metrics: 7401, bridge: 19_000 },
        },
      },
    ],
    monitoring: null,
  });
});

test('the example is good, and says what it seems to say', () => {
  const text = readFileSync(new URL('../../inventory/example.yaml', import.meta.url), 'utf8');
  assert.deepEqual(inventoryIn(text).monitoring, { host: 'ant', port: 9090 });
  assert.deepEqual(hostIn(text, 'ant').variables.advertise, { kind: 'interface', interface: 'enp5s0' });
  assert.deepEqual(hostIn(text, 'bee').connection, {
    address: 'bee.example.net',
    port: 2222,
    user: 'ops',
    key: { kind: 'file', path: '~/.ssh/id_ed25519' },
    become: { kind: 'sudo', password: { kind: 'ask' } },
    jump: null,
  });
  assert.deepEqual(hostIn(text, 'bee').variables.cpus, [
    { first: 0, last: 7 },
    { first: 16, last: 23 },
  ]);
  assert.deepEqual(hostIn(text, 'bee').variables.gpus, { kind: 'these', indexes: [] });
  assert.deepEqual(hostIn(text, 'cicada').connection.jump, {
    kind: 'machine',
    target: { address: 'gate.example.net', port: 22, user: 'guest', key: { kind: 'file', path: '~/.ssh/gate' } },
  });
  assert.deepEqual(hostIn(text, 'cicada').variables.ports, { agent: 17_400, metrics: 17_401, bridge: 19_000 });
});

test('a setting is the host’s, else its group’s, else the fleet’s; ports one by one', () => {
  const text = `
fleet: { port: 1, user: f, variables: { ports: { agent: 1101, metrics: 1102 }, stateFolder: /f } }
groups: { g: { port: 2, user: g, variables: { ports: { agent: 2001 } } }, empty: }
hosts:
  ant: { address: a, groups: [g, empty], port: 3, variables: { gpus: all } }
  bee: { address: b }
`;
  const ant = hostIn(text, 'ant');
  assert.deepEqual([ant.connection.port, ant.connection.user, ant.variables.stateFolder], [3, 'g', '/f']);
  assert.deepEqual(ant.variables.ports, { agent: 2001, metrics: 1102, bridge: 19_000 });
  const bee = hostIn(text, 'bee');
  assert.deepEqual([bee.connection.port, bee.connection.user], [1, 'f']);
});

test('a host may keep out of the fleet’s jump', () => {
  const text = 'fleet: { jump: gate }\nhosts:\n  gate: { address: g, jump: none }\n  ant: { address: a }\n';
  assert.equal(hostIn(text, 'gate').connection.jump, null);
  assert.deepEqual(hostIn(text, 'ant').connection.jump, { kind: 'host', host: 'gate' });
});

test('every fault of shape is named at once', () => {
  const wrong = `fleet: { port: 0, usr: x }
groups:
  Fast: {}
  slow: 3
hosts:
  ant_1: { address: 192.0.2.300 }
  bee:
    port: "22"
    become: { sudo: yes }
    jump: { port: 22 }
    variables:
      advertise: { address: bee.example.net }
      gpus: [0, 0]
      cpus: 0..3
      stateFolder: var/../lib
      ports: { agent: 70000 }
  cow: null
monitoring: 5
`;
  assert.equal(
    faultsIn(wrong),
    [
      'i.yaml:1:16 /fleet/port: found 0, expected a port, from 1 to 65535',
      'i.yaml:1:19 /fleet/usr: found the unknown key "usr", expected one of the keys port, user, key, become, jump, variables',
      'i.yaml:3:3 /groups/Fast: found "Fast", expected a group\'s name: lower-case letters, digits and inner dashes, at most 63',
      'i.yaml:4:9 /groups/slow: found 3, expected a mapping of what holds for the hosts of the group',
      'i.yaml:6:3 /hosts/ant_1: found "ant_1", expected a host\'s name: lower-case letters, digits and inner dashes, at most 63',
      'i.yaml:6:21 /hosts/ant_1/address: found "192.0.2.300", expected a DNS name or an IP address',
      'i.yaml:8:5 /hosts/bee/address: found nothing, expected a DNS name or an IP address',
      'i.yaml:8:11 /hosts/bee/port: found "22", expected a port, from 1 to 65535',
      'i.yaml:9:21 /hosts/bee/become/sudo: found "yes", expected `ask`, or { passwordFile: path }',
      'i.yaml:10:11 /hosts/bee/jump/address: found nothing, expected a DNS name or an IP address',
      'i.yaml:12:29 /hosts/bee/variables/advertise/address: found "bee.example.net", expected an IP address',
      'i.yaml:13:13 /hosts/bee/variables/gpus: found a list of 2, expected `all`, `none`, or a list of GPU indexes, each once',
      'i.yaml:14:13 /hosts/bee/variables/cpus: found "0..3", expected `all`, or CPUs in rising order as in 0-3,8',
      'i.yaml:15:20 /hosts/bee/variables/stateFolder: found "var/../lib", expected an absolute path of letters, digits, dots, dashes and underscores',
      'i.yaml:16:23 /hosts/bee/variables/ports/agent: found 70000, expected a port from 1024 to 65535: lower ones are open to root alone, and p4 does not run as root',
      'i.yaml:17:8 /hosts/cow: found nothing, expected a host: a mapping with at least its address',
      "i.yaml:18:13 /monitoring: found 5, expected a host's name, or { host: name, port: number }",
    ].join('\n'),
  );
});

test('hosts are wanted', () => {
  assert.equal(
    faultsIn('hosts: {}\n'),
    'i.yaml:1:8 /hosts: found an empty mapping, expected a mapping of 1 to 256 hosts, by name',
  );
  assert.equal(
    faultsIn('fleet: {}\n'),
    'i.yaml:1:1 /hosts: found nothing, expected a mapping of 1 to 256 hosts, by name',
  );
});

test('names lead somewhere', () => {
  const text = `fleet: { jump: gate }
hosts:
  ant: { address: a, groups: [fast], jump: none }
  bee: { address: b }
monitoring: cow
`;
  assert.equal(
    faultsIn(text),
    [
      'i.yaml:1:16 /fleet/jump: found the unknown host "gate", expected `none`, a host of the inventory, or { address: … } of another machine',
      'i.yaml:3:31 /hosts/ant/groups/0: found the unknown group "fast", expected a group, of which there is none',
      'i.yaml:5:13 /monitoring: found the unknown host "cow", expected one of the hosts ant, bee',
    ].join('\n'),
  );
});

test('a way over jump hosts ends', () => {
  const text = `hosts:
  ant: { address: a, jump: bee }
  bee: { address: b, jump: cow }
  cow: { address: c, jump: bee }
  dog: { address: d, jump: dog }
`;
  assert.equal(
    faultsIn(text),
    [
      'i.yaml:3:28 /hosts/bee/jump: found a way that goes bee → cow → bee, expected a way that ends',
      'i.yaml:4:28 /hosts/cow/jump: found a way that goes cow → bee → cow, expected a way that ends',
      'i.yaml:5:28 /hosts/dog/jump: found a way that goes dog → dog, expected a way that ends',
    ].join('\n'),
  );
});

test('groups that differ about a host are a fault, unless it has its own word', () => {
  const groups = 'groups: { g: { user: a, variables: { gpus: all } }, h: { user: b, variables: { gpus: all } } }\n';
  assert.equal(
    faultsIn(`${groups}hosts:\n  ant: { address: a, groups: [g, h] }\n`),
    'i.yaml:3:30 /hosts/ant/groups: found user from both g and h, which differ, expected user at the host itself',
  );
  assert.equal(hostIn(`${groups}hosts:\n  ant: { address: a, groups: [g, h], user: c }\n`, 'ant').connection.user, 'c');
});

test('hosts are told apart', () => {
  const text = `fleet: { variables: { advertise: { address: "::1" } } }
hosts:
  ant: { address: "2001:db8::1" }
  bee: { address: "2001:DB8:0::1" }
  cow: { address: "2001:db8::1", port: 2222, variables: { advertise: { interface: eth0 } } }
`;
  assert.equal(
    faultsIn(text),
    [
      'i.yaml:1:45 /fleet/variables/advertise/address: found "::1" for both ant and bee, expected an advertised address of its own',
      'i.yaml:1:45 /fleet/variables/advertise/address: found "::1", expected an address that the other hosts can reach',
      'i.yaml:4:19 /hosts/bee/address: found "2001:DB8:0::1" for both ant and bee, expected another address, port or jump host for each host',
    ].join('\n'),
  );
});

test('the listeners of a host have ports of their own', () => {
  const text = `fleet: { variables: { ports: { metrics: 7400 } } }
hosts:
  ant: { address: a }
  bee: { address: b, variables: { ports: { metrics: 2000, bridge: 2000 } } }
  cat: { address: c, port: 2222, variables: { ports: { agent: 2222, metrics: 9090 } } }
monitoring: { host: cat }
`;
  assert.equal(
    faultsIn(text),
    [
      'i.yaml:1:41 /fleet/variables/ports/metrics: found port 7400 for both agent and metrics, expected a port for each',
      'i.yaml:4:67 /hosts/bee/variables/ports/bridge: found port 2000 for both metrics and bridge, expected a port for each',
      'i.yaml:5:63 /hosts/cat/variables/ports/agent: found port 2222 for both ssh and agent, expected a port for each',
      'i.yaml:5:78 /hosts/cat/variables/ports/metrics: found port 9090 for both Prometheus and metrics, expected a port for each',
    ].join('\n'),
  );
});

test('a port that only root may open is refused at its line, whoever listens there', () => {
  const lines = ['agent', 'metrics', 'bridge'].map(
    (name, index) => `  h${index}: { address: a${index}, variables: { ports: { ${name}: 1023 } } }`,
  );
  const faults = faultsIn(['hosts:', ...lines, ''].join('\n')).split('\n');
  const expected = 'a port from 1024 to 65535: lower ones are open to root alone, and p4 does not run as root';
  assert.deepEqual(
    faults.map((fault) => fault.replace(/:[0-9]+ /, ' ')),
    ['agent', 'metrics', 'bridge'].map(
      (name, index) => `i.yaml:${index + 2} /hosts/h${index}/variables/ports/${name}: found 1023, expected ${expected}`,
    ),
  );
  assert.equal(
    hostIn('hosts: { ant: { address: a, variables: { ports: { agent: 1024 } } } }', 'ant').variables.ports.agent,
    1024,
  );
});

test('CPUs rise and come once', () => {
  const cpus = (text: string): string => `hosts:\n  ant: { address: a, variables: { cpus: "${text}" } }\n`;
  assert.deepEqual(hostIn(cpus('5'), 'ant').variables.cpus, [{ first: 5, last: 5 }]);
  const place = 'i.yaml:2:41 /hosts/ant/variables/cpus';
  assert.equal(faultsIn(cpus('3-1')), `${place}: found 3-1, expected the lower CPU first: 1-3`);
  assert.equal(faultsIn(cpus('0-3,3')), `${place}: found 3, expected CPUs above 3: each once and in rising order`);
});

test('an inventory knows its lines', () => {
  const reading = parseInventory('hosts:\n  ant: { address: a }\n', 'i.yaml');
  assert(reading.kind === 'inventory');
  assert.deepEqual(reading.locate('/hosts/ant/address'), { file: 'i.yaml', line: 2, column: 19 });
});

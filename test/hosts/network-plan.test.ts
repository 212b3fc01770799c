import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import { planNetworks, takenSubnets, type FleetNetworks } from './network-plan.ts';

const fleet: FleetNetworks = {
  id: '0a00ff',
  hosts: [
    { name: 'ant', networks: ['slow', 'fast'] },
    { name: 'bee', networks: ['slow'] },
  ],
  networks: [
    { name: 'slow', hasOperator: true },
    { name: 'fast', families: ['ipv6', 'ipv4'] },
  ],
  taken: new Set([255]),
};

test('every host has an address of its own in every network it is in', () => {
  const [slow, fast] = planNetworks(fleet);
  assert.deepEqual([...(slow?.links.keys() ?? [])], ['ant', 'bee']);
  assert.deepEqual([...(fast?.links.keys() ?? [])], ['ant']);
  const addresses = [slow, fast].flatMap((plan) => [...(plan?.links.values() ?? [])].flatMap((link) => link.addresses));
  assert.equal(new Set(addresses.map(({ address }) => address)).size, 4);
  for (const { address, family } of addresses) assert.equal(isIP(address), family === 'ipv4' ? 4 : 6, address);
});

test('a subnet that the machine has is left alone, and numbers go on from the start', () => {
  const [slow, fast] = planNetworks(fleet);
  assert.equal(slow?.links.get('bee')?.addresses[0]?.address, '198.19.0.12');
  assert.deepEqual(fast?.links.get('ant')?.addresses, [
    { family: 'ipv6', address: 'fd0a:ff:102::b', prefixLength: 48 },
    { family: 'ipv4', address: '198.19.1.11', prefixLength: 24 },
  ]);
  assert.deepEqual(takenSubnets(['198.18.255.1', '198.19.0.4', '10.0.0.1', '198.20.0.1', '::1']), new Set([255, 256]));
});

test('the operator is only where it was put, under a name that an interface may have', () => {
  const [slow, fast] = planNetworks(fleet);
  assert.equal(fast?.operator, null);
  assert.equal(slow?.operator?.link.addresses[0]?.address, '198.19.0.1');
  assert.ok(slow.operator.device.length <= 15);
});

test('a name that no interface can have is refused', () => {
  for (const name of ['', 'Slow', 'a-name-of-sixteen', 'a b']) {
    assert.throws(() => planNetworks({ ...fleet, networks: [{ name }] }), /names interfaces/, name);
  }
});

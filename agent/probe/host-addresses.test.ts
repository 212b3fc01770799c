import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { BurstMeter } from './burst.ts';
import { hostAddresses } from './host-addresses.ts';
import { isProof, proofOf } from './secret-proof.ts';

const link = (name: string): { mtu: number; linkMbps: number } => ({
  mtu: name === 'lo' ? 65_536 : 1500,
  linkMbps: 1000,
});

/** As `ip -j addr` of iproute2 6.1 prints it. */
const details = [
  {
    ...{ ifname: 'eth0', flags: ['BROADCAST', 'MULTICAST', 'UP', 'LOWER_UP'], mtu: 9000, operstate: 'UP' },
    addr_info: [
      { family: 'inet', local: '10.1.0.1', prefixlen: 24, scope: 'global', dynamic: true, label: 'eth0' },
      { family: 'inet', local: '10.1.0.100', prefixlen: 24, scope: 'global', secondary: true, label: 'eth0' },
      { family: 'inet6', local: '2001:db8::1', prefixlen: 64, scope: 'global', temporary: true, secondary: true },
      { family: 'inet6', local: '2001:db8::2', prefixlen: 64, scope: 'global', preferred_life_time: 0 },
      { family: 'inet6', local: 'fe80::1', prefixlen: 64, scope: 'link' },
    ],
  },
  {
    ...{ ifname: 'eth1', flags: ['NO-CARRIER', 'BROADCAST', 'UP'], mtu: 1500, operstate: 'DOWN' },
    addr_info: [{ family: 'inet', local: '10.2.0.1', prefixlen: 24, scope: 'global' }],
  },
];
const interfaces = {
  lo: [{ address: '127.0.0.1', cidr: '127.0.0.1/8' }],
  eth0: [{ address: '10.1.0.1', cidr: '10.1.0.1/24' }],
};

suite('the addresses of a host', () => {
  test('come with what the kernel says of them', () => {
    const found = hostAddresses({ interfaces, details, link });
    assert.deepEqual(
      found.map(({ address, scope, flags, isUp, mtu }) => [address, scope, flags.join(), isUp, mtu]),
      [
        ['10.1.0.1', 'global', 'dynamic', true, 9000],
        ['10.1.0.100', 'global', 'secondary', true, 9000],
        ['2001:db8::1', 'global', 'temporary', true, 9000],
        ['2001:db8::2', 'global', 'deprecated', true, 9000],
        ['fe80::1', 'link', '', true, 9000],
        ['10.2.0.1', 'global', '', false, 1500],
        ['127.0.0.1', 'host', '', true, 65_536],
      ],
    );
  });

  test('are known without the program ip, or with nonsense from it', () => {
    for (const nonsense of [null, 'x', [{ ifname: 'eth0', addr_info: [{ local: 7 }] }]]) {
      const found = hostAddresses({ interfaces, details: nonsense, link });
      assert.deepEqual(
        found.map(({ address, prefixLength, interface: name }) => `${name} ${address}/${prefixLength}`),
        ['lo 127.0.0.1/8', 'eth0 10.1.0.1/24'],
      );
    }
  });
});

test('a burst is measured without its beginning, and what comes late makes it slow', () => {
  const steady = new BurstMeter(100, 1e9);
  steady.add(50_000, 0);
  for (let atMs = 10; atMs <= 100; atMs += 10) steady.add(1000, atMs);
  assert.equal(steady.bytesPerSecond(100), 100_000, 'the first amount was for free');
  const stalled = new BurstMeter(100, 1e9);
  stalled.add(1000, 0);
  assert.equal(stalled.bytesPerSecond(100), 10_000);
  const full = new BurstMeter(100, 1000);
  full.add(500, 0);
  full.add(500, 10);
  assert.ok(full.isFull);
  assert.equal(full.bytesPerSecond(90), 50_000, 'it ended with its last byte');
});

test('a proof is for one secret, one side and its claims alone', () => {
  const parts = { secret: 'ab'.repeat(32), side: 'caller', claims: ['1', 'reach'] } as const;
  const proof = proofOf(parts);
  assert.ok(isProof(proof, parts));
  assert.ok(!isProof(proof, { ...parts, side: 'listener' }));
  assert.ok(!isProof(proof, { ...parts, secret: 'cd'.repeat(32) }));
  assert.ok(!isProof(proof, { ...parts, claims: ['1', 'down'] }));
  for (const none of ['', null, 7, proof.slice(1)]) assert.ok(!isProof(none, parts));
});

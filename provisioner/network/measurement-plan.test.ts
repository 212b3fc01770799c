import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { hostName } from '../../protocol/ids.ts';
import type { HostAddress, ReachOutcome } from '../../protocol/probe-messages.ts';
import { BurstSchedule } from './burst-schedule.ts';
import { burstsBetween, reachTargets, withBursts, type MeasurementPlan } from './measurement-plan.ts';
import type { ReachCell } from './reach-matrix.ts';
import { subnetOf } from './subnet.ts';

const [ant, bee] = [hostName('ant'), hostName('bee')];
const at = (address: string, scope: HostAddress['scope'] = 'global'): HostAddress => ({
  ...{ address, scope, prefixLength: 24, interface: 'eth0', flags: [], isUp: true, mtu: 1500, linkMbps: 0 },
  listener: { kind: 'port', port: 61_000 },
});
const plan: MeasurementPlan = {
  candidates: [
    { host: ant, addresses: [at('127.0.0.1', 'host'), at('10.1.0.1'), at('172.17.0.1'), at('fe80::1', 'link')] },
    { host: bee, addresses: [at('10.1.0.2'), at('172.17.0.1'), at('fe80::2', 'link')] },
  ],
  overrides: new Map(),
};
const reached = (from: typeof ant, address: string, seenAs: string): ReachCell => {
  const to = from === ant ? bee : ant;
  const reach: ReachOutcome = { kind: 'reached', by: { host: to, machineId: '' }, seenAs, roundTripMs: 1 };
  return { from, to, address, zone: null, reach, burst: null };
};
const cells = [reached(ant, '10.1.0.2', '10.1.0.1'), reached(bee, '10.1.0.1', '10.1.0.2')];

suite('a measurement', () => {
  test('tries what may serve, and link-local addresses only in want of others', () => {
    const targets = reachTargets([ant, bee], plan, 'global');
    assert.deepEqual(
      targets.map(({ from, address }) => `${from} ${address}`),
      ['bee 10.1.0.1', 'ant 10.1.0.2'],
    );
    assert.deepEqual(reachTargets([ant, bee], plan, { unless: cells }), []);
    assert.deepEqual(
      reachTargets([ant, bee], plan, { unless: cells.slice(1) }).map(({ from, address, zone }) => [
        from,
        address,
        zone,
      ]),
      [
        [bee, 'fe80::1', 'eth0'],
        [ant, 'fe80::2', 'eth0'],
      ],
    );
  });

  test('measures a way once and tells both its ends', () => {
    const [burst, ...more] = burstsBetween(cells, plan);
    assert.ok(burst !== undefined);
    assert.deepEqual(more, []);
    const outcome = { kind: 'measured', upBytesPerSecond: 3, downBytesPerSecond: 7 } as const;
    const [there, back] = withBursts(cells, [{ ...burst, outcome }]);
    assert.deepEqual(there?.burst, outcome);
    assert.deepEqual(back?.burst, { kind: 'measured', upBytesPerSecond: 7, downBytesPerSecond: 3 });
    const behindNat = [cells[0] ?? assert.fail(), reached(bee, '10.1.0.1', '192.0.2.1')];
    assert.equal(burstsBetween(behindNat, plan).length, 2, 'another way back is measured by itself');
  });

  test('has no host in two bursts at once, and leaves none out', () => {
    const hosts = ['a', 'b', 'c', 'd', 'e'].map(hostName);
    const bursts = hosts.flatMap((from, index) => hosts.slice(index + 1).map((to) => ({ from, to })));
    const schedule = new BurstSchedule(bursts);
    const running = [...schedule.begin()];
    assert.equal(running.length, 2, 'two pairs of five hosts at once');
    let ended = 0;
    for (let burst = running.shift(); burst !== undefined; burst = running.shift()) {
      schedule.ended(burst);
      ended += 1;
      running.push(...schedule.begin());
      const busy = running.flatMap(({ from, to }) => [from, to]);
      assert.equal(new Set(busy).size, busy.length);
    }
    assert.equal(ended, bursts.length);
  });
});

test('a network is named by its prefix', () => {
  assert.equal(subnetOf('10.1.2.3', 24), '10.1.2.0/24');
  assert.equal(subnetOf('10.1.2.3', 20), '10.1.0.0/20');
  assert.equal(subnetOf('2001:DB8::1:2', 64), '2001:db8::/64');
  assert.equal(subnetOf('fd00:1:2:3:4:5:6:7', 60), 'fd00:1:2::/60');
  assert.equal(subnetOf('10.1.2.3', 32), null);
  assert.equal(subnetOf('2001:db8::1', 128), null);
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { hostName, ringName, type HostName } from '../../protocol/ids.ts';
import type { Advertise } from '../../protocol/inventory.ts';
import type { AddressFlag, HostAddress, ReachOutcome } from '../../protocol/probe-messages.ts';
import type { Fleet, FleetHost } from '../fleet-file.ts';
import { chooseAddresses, type AddressChoice, type AddressQuestion } from './address-choice.ts';
import { addressTable } from './choice-text.ts';
import { dialledAddress, ringAddresses } from './fleet-network.ts';
import { hostMove } from './kept-choice.ts';
import { ReachMatrix, type HostAddresses, type ReachCell } from './reach-matrix.ts';
import { rejectionText } from './rejection.ts';

const [ant, bee, cow] = [hostName('ant'), hostName('bee'), hostName('cow')];
const all = [ant, bee, cow];

function own(address: string, name: string, change: Partial<HostAddress> = {}): HostAddress {
  const scope = /^fe80|^169\.254/.test(address) ? 'link' : /^127\.|^::1$/.test(address) ? 'host' : 'global';
  return {
    ...{ address, interface: name, scope, prefixLength: address.includes(':') ? 64 : 24, flags: [], isUp: true },
    ...{ mtu: 1500, linkMbps: 0, listener: { kind: 'port', port: 61_000 } },
    ...change,
  };
}

const flagged = (address: string, ...flags: readonly AddressFlag[]): HostAddress => own(address, 'eth0', { flags });

/** Megabytes a second, or how an attempt failed. */
type Way = number | ReachOutcome;
type Answer = (from: HostName, to: HostName, address: string) => Way;

function matrixOf(candidates: readonly HostAddresses[], answer: Answer): readonly ReachCell[] {
  return candidates.flatMap(({ host: to, addresses }) =>
    candidates
      .filter(({ host }) => host !== to)
      .flatMap(({ host: from }) =>
        addresses.map(({ address, scope }): ReachCell => {
          const way = answer(from, to, address);
          const zone = scope === 'link' ? `eth-${from}` : null;
          const base = { from, to, address, zone };
          if (typeof way !== 'number') return { ...base, reach: way, burst: null };
          const rates = { upBytesPerSecond: way * 1e6, downBytesPerSecond: way * 2e6 };
          const reach: ReachOutcome = {
            ...{ kind: 'reached', by: { host: to, machineId: to }, seenAs: '192.0.2.9', roundTripMs: 0.2 },
          };
          return { ...base, reach, burst: { kind: 'measured', ...rates } };
        }),
      ),
  );
}

/** Slow 10.1, fast 10.2. */
const bySubnet: Answer = (_from, _to, address) => (address.startsWith('10.1.') ? 10 : 1000);

const twoNetworks: readonly HostAddresses[] = all.map((host, index) => ({
  host,
  addresses: [own('127.0.0.1', 'lo'), own(`10.1.0.${index + 1}`, 'eth0'), own(`10.2.0.${index + 1}`, 'eth1')],
}));

function choose(
  candidates: readonly HostAddresses[],
  answer: Answer,
  change: Partial<AddressQuestion> = {},
): AddressChoice {
  return chooseAddresses({
    ...{ hosts: candidates.map(({ host }) => host), candidates, matrix: new ReachMatrix(matrixOf(candidates, answer)) },
    ...{ overrides: new Map(), former: new Map(), sshAddresses: new Map(), ...change },
  });
}

const chosen = ({ decisions }: AddressChoice): readonly (string | undefined)[] =>
  decisions.map((decision) => decision.chosen?.address);

const why = ({ decisions }: AddressChoice, address: string): readonly string[] =>
  decisions.flatMap(({ rejected }) =>
    rejected.flatMap((each) => (each.address === address ? [rejectionText(each.rejection)] : [])),
  );

const refused = (...reasons: readonly HostName[]): Answer => {
  return (from, to, address) =>
    reasons.includes(from) && address === '10.2.0.1' && to === ant
      ? { kind: 'unreachable', why: 'refused' }
      : bySubnet(from, to, address);
};

suite('advertised addresses', () => {
  test('the fastest network that all share wins, and every other address has its reason', () => {
    const choice = choose(twoNetworks, bySubnet);
    assert.deepEqual(chosen(choice), ['10.2.0.1', '10.2.0.2', '10.2.0.3']);
    assert.deepEqual(choice.refusals, []);
    assert.deepEqual(why(choice, '10.1.0.2'), ['slower: 10.0 MB/s, the chosen one 1.0 GB/s']);
    assert.deepEqual(
      why(choice, '127.0.0.1'),
      all.map(() => 'loopback: only the host itself reaches it'),
    );
    assert.deepEqual(choice.decisions[0]?.listen, ['10.2.0.1', '10.1.0.1']);
    const [title, first] = addressTable(choice);
    assert.match(title ?? '', /^HOST +ADDRESS +INTERFACE +WHY$/);
    assert.match(first ?? '', /^ant +10\.2\.0\.1 +eth1 +chosen +in 10\.2\.0\.0\/24, the fastest network/);
  });

  test('a network is as fast as its slowest pair', () => {
    const oneSlowPair: Answer = (from, to, address) => {
      if (address.startsWith('10.1.')) return 100;
      return [from, to].includes(bee) && [from, to].includes(cow) ? 5 : 1000;
    };
    assert.deepEqual(chosen(choose(twoNetworks, oneSlowPair)), ['10.1.0.1', '10.1.0.2', '10.1.0.3']);
  });

  test('an address that one host does not reach is out, and with it its network', () => {
    const choice = choose(twoNetworks, refused(cow));
    assert.deepEqual(chosen(choice)[0], '10.1.0.1');
    assert.deepEqual(why(choice, '10.2.0.1'), ['not reachable from cow (refused)']);
    assert.ok(choice.decisions[0]?.listen.includes('10.2.0.1'), 'bee reaches it: a ring of the two may use it');
  });

  test('a shared address, one that another machine answers, and one that loses packets are out', () => {
    const trapped = twoNetworks.map(({ host, addresses }) => ({
      host,
      addresses: [...addresses, own('172.17.0.1', 'docker0', { prefixLength: 16 })],
    }));
    assert.deepEqual(
      why(choose(trapped, bySubnet), '172.17.0.1'),
      all.map(() => 'shared by ant, bee and cow'),
    );
    const stray: Answer = (from, to, address) =>
      address === '10.2.0.1'
        ? { kind: 'reached', by: { host: bee, machineId: 'b' }, seenAs: '10.2.0.9', roundTripMs: 1 }
        : bySubnet(from, to, address);
    assert.deepEqual(why(choose(twoNetworks, stray), '10.2.0.1'), ['answered by bee when bee connects']);
    const torn: Answer = (from, to, address) =>
      address === '10.2.0.1' && from === bee
        ? { kind: 'frame-lost', by: { host: to, machineId: 'a' } }
        : bySubnet(from, to, address);
    assert.deepEqual(why(choose(twoNetworks, torn), '10.2.0.1'), ['large packets are lost from bee (MTU)']);
  });

  test('addresses that will go or move are not taken, however fast', () => {
    const eth0 = (host: HostName, ...more: readonly HostAddress[]): HostAddresses => ({
      host,
      addresses: [own(`10.1.0.${all.indexOf(host) + 1}`, 'eth0'), ...more],
    });
    const candidates = [
      eth0(ant, own('10.2.0.1', 'eth0', { prefixLength: 32 })),
      eth0(bee, flagged('10.2.0.2', 'secondary'), flagged('2001:db8::2', 'temporary')),
      eth0(cow, flagged('2001:db8::3', 'deprecated'), own('10.2.0.3', 'eth1', { isUp: false })),
    ];
    const choice = choose(candidates, bySubnet);
    assert.deepEqual(chosen(choice), ['10.1.0.1', '10.1.0.2', '10.1.0.3']);
    const virtual = 'looks like a virtual address that moves between hosts';
    assert.deepEqual([...why(choice, '10.2.0.1'), ...why(choice, '10.2.0.2')], [virtual, virtual]);
    assert.deepEqual(why(choice, '2001:db8::2'), ['temporary: the host will give it up']);
    assert.deepEqual(why(choice, '10.2.0.3'), ['its link is down']);
    assert.deepEqual(choice.decisions[0]?.listen, ['10.1.0.1']);
    const cloud = [ant, bee].map((host, index) => ({
      host,
      addresses: [own(`10.1.0.${index + 1}`, 'eth0', { prefixLength: 32 })],
    }));
    assert.deepEqual(chosen(choose(cloud, bySubnet)), ['10.1.0.1', '10.1.0.2'], 'an only address without a network');
  });

  test('IPv6 alone serves, and link-local only where nothing else does', () => {
    const six = [ant, bee].map((host, index) => ({
      host,
      addresses: [own(`2001:db8::${index + 1}`, 'eth0'), own(`fe80::${index + 1}`, 'eth0')],
    }));
    assert.deepEqual(chosen(choose(six, bySubnet)), ['2001:db8::1', '2001:db8::2']);
    const linkLocal = six.map(({ host, addresses }) => ({ host, addresses: addresses.slice(1) }));
    const choice = choose(linkLocal, bySubnet);
    assert.deepEqual(chosen(choice), ['fe80::1', 'fe80::2']);
    assert.deepEqual(choice.decisions[0]?.listen, ['fe80::1%eth0']);
  });

  test('what was chosen before stays until something is clearly faster', () => {
    const former = new Map(all.map((host, index) => [host, `10.1.0.${index + 1}`]));
    const near: Answer = (_from, _to, address) => (address.startsWith('10.1.') ? 85 : 100);
    assert.deepEqual(chosen(choose(twoNetworks, near, { former })), ['10.1.0.1', '10.1.0.2', '10.1.0.3']);
    assert.deepEqual(chosen(choose(twoNetworks, near)), ['10.2.0.1', '10.2.0.2', '10.2.0.3']);
    assert.deepEqual(chosen(choose(twoNetworks, bySubnet, { former })), ['10.2.0.1', '10.2.0.2', '10.2.0.3']);
    former.delete(cow);
    assert.deepEqual(chosen(choose(twoNetworks, near, { former }))[2], '10.1.0.3', 'a new host joins the others');
  });

  test('hosts that no one network joins get the fastest that all others reach', () => {
    const routed = all.map((host, index) => ({ host, addresses: [own(`10.${index + 1}.0.1`, 'eth0')] }));
    const choice = choose(routed, () => 50);
    assert.deepEqual(chosen(choice), ['10.1.0.1', '10.2.0.1', '10.3.0.1']);
    assert.deepEqual(choice.decisions[0]?.chosen?.reason.kind, 'fastest-of-host');
  });

  test('a host without any is told with all reasons', () => {
    const choice = choose(twoNetworks, (from, to, address) =>
      to === ant ? { kind: 'unreachable', why: 'timed-out' } : bySubnet(from, to, address),
    );
    assert.deepEqual(
      choice.refusals.map(({ code }) => code),
      ['ADVERTISE_NONE'],
    );
    assert.match(choice.refusals[0]?.message ?? '', /10\.2\.0\.1: not reachable from bee \(no answer\) and cow/);
  });

  test('one host alone takes where ssh reaches it, loopback too', () => {
    const one = twoNetworks.slice(0, 1);
    const at = (address: string): AddressChoice => choose(one, bySubnet, { sshAddresses: new Map([[ant, address]]) });
    assert.deepEqual(chosen(at('127.0.0.1')), ['127.0.0.1']);
    assert.deepEqual(chosen(at('10.2.0.1')), ['10.2.0.1']);
    assert.deepEqual(chosen(at('198.51.100.7')), ['10.1.0.1'], 'an address that is not its own');
  });
});

suite('an inventory that names the address', () => {
  const wish = (advertise: Advertise, answer: Answer = bySubnet): AddressChoice =>
    choose(twoNetworks, answer, { overrides: new Map([[ant, advertise]]) });

  test('gets it, by address or interface, and the others keep the choice', () => {
    const choice = wish({ kind: 'address', address: '10.1.0.1' });
    assert.deepEqual(chosen(choice), ['10.1.0.1', '10.2.0.2', '10.2.0.3']);
    assert.deepEqual(why(choice, '10.2.0.1'), ['the inventory wants 10.1.0.1']);
    assert.deepEqual(chosen(wish({ kind: 'interface', interface: 'eth0' }))[0], '10.1.0.1');
  });

  test('is refused where a host does not reach it, or nobody has it', () => {
    const [error] = wish({ kind: 'interface', interface: 'eth1' }, refused(bee, cow)).refusals;
    assert.equal(error?.code, 'ADVERTISE_UNREACHABLE');
    assert.deepEqual(error.facts['why'], ['10.2.0.1: not reachable from bee (refused) and cow (refused)']);
    const [other] = wish({ kind: 'address', address: '10.9.0.1' }).refusals;
    assert.equal(other?.code, 'ADVERTISE_UNKNOWN');
    const [loopback] = wish({ kind: 'address', address: '127.0.0.1' }).refusals;
    assert.equal(loopback?.code, 'ADVERTISE_UNREACHABLE', 'never loopback when there are others');
  });
});

suite('addresses of a ring', () => {
  const onlyTwo = refused(cow);
  const choice = choose(twoNetworks, onlyTwo);
  const fleetOf = (isFixed: boolean): Fleet => ({
    hosts: twoNetworks.map(({ host, addresses }, index): FleetHost => {
      const listen = choice.decisions[index]?.listen ?? [];
      const network = { listen, operatorAddress: null, isFixed, addresses, rejected: [] };
      const address = `10.1.0.${index + 1}`;
      return {
        name: host,
        address,
        port: 7400,
        certificateName: host,
        since: '2030-01-02T00:00:00Z',
        why: 'x',
        network,
        ssh: null,
      };
    }),
    measurement: { at: '2030-01-02T00:00:00Z', cells: matrixOf(twoNetworks, onlyTwo) },
  });

  test('are in a faster network that just its hosts share', () => {
    assert.deepEqual(
      [...ringAddresses(fleetOf(false), [ant, bee])],
      [
        [ant, '10.2.0.1'],
        [bee, '10.2.0.2'],
      ],
    );
    assert.deepEqual([...ringAddresses(fleetOf(false), all).values()].slice(0, 1), ['10.1.0.1']);
  });

  test('are the advertised ones where those are fixed, or nothing was measured', () => {
    assert.deepEqual([...ringAddresses(fleetOf(true), [ant, bee]).values()], ['10.1.0.1', '10.1.0.2']);
    const unmeasured = { ...fleetOf(false), measurement: null };
    assert.deepEqual([...ringAddresses(unmeasured, [ant, bee]).values()], ['10.1.0.1', '10.1.0.2']);
  });

  test('link-local ones are dialled over the interface of who dials', () => {
    const candidates = [ant, bee].map((host, index) => ({ host, addresses: [own(`fe80::${index + 1}`, 'eth0')] }));
    const fleet: Fleet = { hosts: [], measurement: { at: '', cells: matrixOf(candidates, bySubnet) } };
    assert.equal(dialledAddress(fleet, { from: ant, to: bee }, 'fe80::2%eth0'), 'fe80::2%eth-ant');
    assert.equal(dialledAddress(fleet, { from: ant, to: bee }, '10.1.0.2'), '10.1.0.2');
  });

  test('a host does not move under a loaded ring, and that is said', () => {
    const [decision] = choose(twoNetworks, bySubnet).decisions;
    assert.ok(decision !== undefined);
    const loaded = [{ ring: ringName('tale'), hosts: [ant, bee] }];
    const move = hostMove(decision, '10.1.0.1', loaded);
    assert.ok(move.kind === 'stay');
    assert.match(move.notice, /^ant stays at 10\.1\.0\.1 while tale is loaded; measured now: 10\.2/);
    assert.equal(hostMove(decision, '10.1.0.1', []).kind, 'move');
    assert.equal(hostMove(decision, '10.2.0.1', loaded).kind, 'follow');
    assert.equal(hostMove(decision, null, loaded).kind, 'follow');
  });
});

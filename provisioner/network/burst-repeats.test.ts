import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { hostName, type HostName } from '../../protocol/ids.ts';
import type { BurstOutcome, HostAddress } from '../../protocol/probe-messages.ts';
import { chooseAddresses } from './address-choice.ts';
import {
  burstsToRepeat,
  middleBursts,
  middleOutcome,
  type BurstSamples,
  type RepeatQuestion,
} from './burst-repeats.ts';
import { burstsBetween, withBursts, type Burst } from './measurement-plan.ts';
import { ReachMatrix, type HostAddresses, type ReachCell } from './reach-matrix.ts';

const hosts = ['ant', 'bee', 'cow'].map(hostName);
const networks = ['10.1.0', '10.2.0'] as const;
const [slow, fast] = networks;

const own = (network: string, index: number): HostAddress => ({
  ...{
    address: `${network}.${index + 1}`,
    interface: network,
    scope: 'global',
    prefixLength: 24,
    flags: [],
    isUp: true,
  },
  ...{ mtu: 1500, linkMbps: 0, listener: { kind: 'port', port: 61_000 } },
});
const candidates: readonly HostAddresses[] = hosts.map((host, index) => ({
  host,
  addresses: networks.map((network) => own(network, index)),
}));
const cells: readonly ReachCell[] = hosts.flatMap((to, target) =>
  hosts.flatMap((from, index) =>
    from === to
      ? []
      : networks.map((network): ReachCell => {
          const by = { host: to, machineId: to };
          const reach = { kind: 'reached', by, seenAs: `${network}.${index + 1}`, roundTripMs: 0.2 } as const;
          return { from, to, address: `${network}.${target + 1}`, zone: null, reach, burst: null };
        }),
  ),
);

const standingAt = (network: string): ReadonlyMap<HostName, string> =>
  new Map(hosts.map((host, index) => [host, `${network}.${index + 1}`]));
const questionWith = (former: ReadonlyMap<HostName, string>): RepeatQuestion => ({
  ...{ candidates, cells, former },
  overrides: new Map(),
});

/** Megabytes a second of one burst: by its network, the count of those before over its way, and its pair. */
type Network = (network: string, number: number, pair: string) => number;

const pairOf = ({ from, to }: Burst): string => [from, to].sort().join(' ');

/** Sends rounds of bursts until nothing is in doubt. */
function measure(network: Network, former: ReadonlyMap<HostName, string> = new Map()) {
  const question = questionWith(former);
  const send = ({ burst, outcomes }: BurstSamples): BurstSamples => {
    const rate = network(burst.address.slice(0, 6), outcomes.length, pairOf(burst)) * 1e6;
    const outcome: BurstOutcome = { kind: 'measured', upBytesPerSecond: rate, downBytesPerSecond: rate * 1.1 };
    return { burst, outcomes: [...outcomes, outcome] };
  };
  let samples = burstsBetween(cells, question).map((burst) => send({ burst, outcomes: [] }));
  const rounds: (readonly Burst[])[] = [];
  for (;;) {
    const doubtful = burstsToRepeat(question, samples);
    if (doubtful.length === 0) break;
    rounds.push(doubtful);
    assert.ok(rounds.length < 10, 'it comes to an end');
    samples = samples.map((sample) => (doubtful.includes(sample.burst) ? send(sample) : sample));
  }
  const matrix = new ReachMatrix(withBursts(cells, middleBursts(samples)));
  const { decisions } = chooseAddresses({ ...question, hosts, matrix, sshAddresses: new Map() });
  return { rounds, chosen: [...new Set(decisions.map(({ chosen }) => chosen?.address.slice(0, 6)))] };
}

const quiet: Network = (network) => (network === fast ? 1000 : 100);

suite('bursts that are sent again', () => {
  test('where networks are far apart, one round is enough', () => {
    assert.deepEqual(measure(quiet), { rounds: [], chosen: [fast] });
    assert.deepEqual(measure(quiet, standingAt(fast)), { rounds: [], chosen: [fast] });
  });

  test('one burst that comes out low moves no host, and takes no fast network from a new fleet', () => {
    const oneLow: Network = (network, number, pair) =>
      network === fast && number === 0 && pair === 'ant bee' ? 20 : quiet(network, number, pair);
    for (const former of [standingAt(fast), new Map<HostName, string>()]) {
      const { rounds, chosen } = measure(oneLow, former);
      assert.deepEqual(chosen, [fast]);
      assert.ok(rounds.length > 0);
    }
  });

  test('nor do two of one way', () => {
    const twoLow: Network = (network, number, pair) =>
      network === fast && number < 2 && pair === 'bee cow' ? 20 : quiet(network, number, pair);
    assert.deepEqual(measure(twoLow, standingAt(fast)).chosen, [fast]);
  });

  test('a standing network that has become slow is left, after five bursts over each way', () => {
    const { rounds, chosen } = measure((network) => (network === fast ? 20 : 100), standingAt(fast));
    assert.deepEqual(chosen, [slow]);
    assert.equal(rounds.length, 4);
  });

  test('a new network that is faster is taken', () => {
    const { rounds, chosen } = measure(quiet, standingAt(slow));
    assert.deepEqual(chosen, [fast]);
    assert.equal(rounds.length, 4);
  });

  test('two networks that are alike are measured three times, and a fleet stays where it is', () => {
    const alike: Network = (network, number) => (network === fast ? 1000 : 960) - 10 * number;
    const { rounds, chosen } = measure(alike);
    assert.deepEqual([rounds.length, chosen], [2, [fast]]);
    assert.deepEqual(measure(alike, standingAt(slow)).chosen, [slow]);
  });

  test('a round measures the addresses of a pair one after the other', () => {
    const [round = []] = measure(quiet, standingAt(slow)).rounds;
    assert.deepEqual(round.map(pairOf), ['ant bee', 'ant bee', 'ant cow', 'ant cow', 'bee cow', 'bee cow']);
    assert.notEqual(round[0]?.address, round[1]?.address);
  });

  test('what is in doubt when the time is over moves no host that stands', () => {
    const samples = burstsBetween(cells, questionWith(new Map())).map((burst): BurstSamples => {
      const rate = burst.address.startsWith(fast) ? 1e9 : 1e8;
      return { burst, outcomes: [{ kind: 'measured', upBytesPerSecond: rate, downBytesPerSecond: rate }] };
    });
    const question = { ...questionWith(standingAt(slow)), hosts, sshAddresses: new Map() };
    const matrix = new ReachMatrix(withBursts(cells, middleBursts(samples)));
    const addresses = (isInDoubt: boolean): readonly (string | undefined)[] =>
      chooseAddresses({ ...question, matrix, isInDoubt }).decisions.map(({ chosen }) => chosen?.address);
    assert.deepEqual(addresses(true), [...standingAt(slow).values()]);
    assert.deepEqual(addresses(false), [...standingAt(fast).values()]);
  });

  test('the middle of bursts is that of each direction, and of those that came through where most did', () => {
    const burst = (up: number, down: number): BurstOutcome => ({
      ...{ kind: 'measured', upBytesPerSecond: up, downBytesPerSecond: down },
    });
    const failed: BurstOutcome = { kind: 'unmeasured', why: 'closed' };
    assert.deepEqual(middleOutcome([burst(1, 9), burst(3, 7), burst(2, 8)]), burst(2, 8));
    assert.deepEqual(middleOutcome([burst(1, 9), burst(3, 7)]), burst(3, 9));
    assert.deepEqual(middleOutcome([burst(1, 9), failed, burst(1, 9)]), burst(1, 9));
    assert.deepEqual(middleOutcome([burst(1, 9), failed, failed]), failed);
    assert.equal(middleOutcome([]), null);
  });
});

/**
 * Measures a fleet's network: starts a probe program on every host, lets each try every address of every other, and
 * then sends bursts over the ways that proved good, never two at once over one host's network. What is in doubt by them
 * is measured again (`burst-repeats.ts`), in rounds, within a time that is set.
 *
 * Link-local addresses are tried only where a host has nothing better. The operator's machine takes part without
 * addresses of its own: where it reaches the agents is wanted, too.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { hostName, type HostName } from '../../protocol/ids.ts';
import type { Advertise } from '../../protocol/inventory.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import { limits } from '../../protocol/limits.ts';
import { burstsToRepeat, middleBursts, type BurstSamples, type RepeatQuestion } from './burst-repeats.ts';
import { BurstSchedule } from './burst-schedule.ts';
import { burstsBetween, reachTargets, withBursts, type Burst, type ReachTarget } from './measurement-plan.ts';
import { ProbeClient, type ProbeProcess } from './probe-client.ts';
import type { Measurement, ReachCell } from './reach-matrix.ts';

/** Where a probe program can be started. */
export interface ProbedHost {
  readonly host: HostName;
  /** Starts `agent/probe/main.js` there. */
  readonly start: (signal: AbortSignal) => Promise<ProbeProcess>;
}

export interface NetworkProbe {
  readonly hosts: readonly ProbedHost[];
  /** Starts the program on the operator's machine; `null`: nobody asks what the operator reaches. */
  readonly operator: ProbedHost['start'] | null;
  readonly overrides: ReadonlyMap<HostName, Advertise>;
  /** Where hosts are advertised so far, without a zone. */
  readonly former: ReadonlyMap<HostName, string>;
  /** What is being done, and how far it is, 0 to 1. */
  readonly progress: (what: string, fraction: number) => void;
  readonly signal: AbortSignal;
}

export interface NetworkMeasurement extends Measurement {
  /** By host. */
  readonly machineIds: ReadonlyMap<HostName, string>;
  /** Whether nothing was in doubt when the time for repeats was over. Where not, hosts are not to be moved for it. */
  readonly isSettled: boolean;
  /** The operator's attempts; their `from` is no host of the fleet. */
  readonly operatorCells: readonly ReachCell[];
}

/** Attempts at once from one host, of which most wait; the program takes twice as many. */
const attemptsAtOnce = limits.probeOrders / 2;

/** @throws PROBE_FAILED, PROBE_PROTOCOL; what starting a program throws; the signal's reason. No program is left running. */
export async function measureNetwork(order: NetworkProbe): Promise<NetworkMeasurement> {
  const probes = await begunProbes(order);
  try {
    const candidates = probes.hosts.map(({ host, addresses }) => ({ host, addresses }));
    const plan = { candidates, overrides: order.overrides };
    const parties = { probes, progress: order.progress };
    const asked = [...probes.hosts, ...(probes.operator === null ? [] : [probes.operator])];
    const names = asked.map(({ host }) => host);
    const tried = await attempts(parties, reachTargets(names, plan, 'global'));
    const isFleet = ({ from }: ReachCell): boolean => from !== probes.operator?.host;
    // Only where the others leave a host without an address.
    const linkLocal = await attempts(parties, reachTargets(names, plan, { unless: tried.filter(isFleet) }));
    const cells = [...tried, ...linkLocal];
    const question = { ...plan, former: order.former, cells: cells.filter(isFleet) };
    const { samples, isSettled } = await believedBursts(parties, question);
    return {
      candidates,
      isSettled,
      cells: withBursts(question.cells, middleBursts(samples)),
      operatorCells: cells.filter((cell) => !isFleet(cell)),
      machineIds: new Map(probes.hosts.map(({ host, machineId }) => [host, machineId])),
    };
  } finally {
    await Promise.all(
      [...probes.hosts, ...(probes.operator === null ? [] : [probes.operator])].map((one) => one.end()),
    );
  }
}

interface Probes {
  readonly hosts: readonly ProbeClient[];
  readonly operator: ProbeClient | null;
}

interface Parties {
  readonly probes: Probes;
  readonly progress: NetworkProbe['progress'];
}

async function begunProbes({ hosts, operator, progress, signal }: NetworkProbe): Promise<Probes> {
  progress('starting the network probe', 0);
  const secret = randomBytes(32).toString('hex');
  // Above the ports that systems give out by themselves, so that it is free on most hosts.
  const port = randomInt(61_000, 65_535);
  const begin = async ({ host, start }: ProbedHost): Promise<ProbeClient> =>
    ProbeClient.begin({ host, process: await start(signal), secret, port, signal });
  const beginnings = await Promise.allSettled([
    ...hosts.map(begin),
    ...(operator === null ? [] : [begin({ host: operatorName(hosts), start: operator })]),
  ]);
  const begun = beginnings.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const failure = beginnings.find((each) => each.status === 'rejected');
  if (failure !== undefined) {
    await Promise.all(begun.map((one) => one.end()));
    throw failure.reason;
  }
  return { hosts: begun.slice(0, hosts.length), operator: begun[hosts.length] ?? null };
}

/** A name that no host has. */
function operatorName(hosts: readonly ProbedHost[]): HostName {
  const taken = new Set<string>(hosts.map(({ host }) => host));
  const name = ['operator', ...hosts.map((_host, index) => `operator-${index}`)].find((one) => !taken.has(one));
  return hostName(name ?? 'operator');
}

async function attempts({ probes, progress }: Parties, targets: readonly ReachTarget[]): Promise<readonly ReachCell[]> {
  let done = 0;
  const from = [...probes.hosts, ...(probes.operator === null ? [] : [probes.operator])];
  const ofProbe = async (probe: ProbeClient): Promise<readonly ReachCell[]> => {
    const cells: ReachCell[] = [];
    const queue = targets.filter((target) => target.from === probe.host);
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { to, address, zone, port } = next;
        const reach = await probe.reach({ address: zone === null ? address : `${address}%${zone}`, port });
        cells.push({ from: probe.host, to, address, zone, reach, burst: null });
        done += 1;
        progress('connecting every host to every other', done / targets.length);
      }
    };
    await Promise.all(Array.from({ length: attemptsAtOnce }, work));
    return cells;
  };
  return (await Promise.all(from.map(ofProbe))).flat();
}

/** The first round is of all ways, the others of those that are in doubt. */
async function believedBursts(
  parties: Parties,
  question: RepeatQuestion,
): Promise<{ readonly samples: readonly BurstSamples[]; readonly isSettled: boolean }> {
  const added = (samples: readonly BurstSamples[], sent: readonly Burst[]): readonly BurstSamples[] =>
    samples.map(({ burst, outcomes }) => {
      const outcome = sent.find((one) => isSameWay(one, burst))?.outcome ?? null;
      return { burst, outcomes: outcome === null ? outcomes : [...outcomes, outcome] };
    });
  const ways = burstsBetween(question.cells, question);
  let samples = added(
    ways.map((burst) => ({ burst, outcomes: [] })),
    await sentBursts(parties, ways),
  );
  const deadline = performance.now() + limits.probeRepeatsMs;
  for (;;) {
    const doubtful = burstsToRepeat(question, samples);
    if (doubtful.length === 0) return { samples, isSettled: true };
    if (performance.now() >= deadline) return { samples, isSettled: false };
    samples = added(samples, await sentBursts(parties, doubtful));
  }
}

const isSameWay = (one: Burst, other: Burst): boolean =>
  one.from === other.from && one.to === other.to && one.address === other.address && one.zone === other.zone;

async function sentBursts({ probes, progress }: Parties, bursts: readonly Burst[]): Promise<readonly Burst[]> {
  const byHost = new Map(probes.hosts.map((probe) => [probe.host, probe]));
  const schedule = new BurstSchedule(bursts);
  const measured: Burst[] = [];
  const run = async (burst: Burst): Promise<void> => {
    const { from, address, zone, port } = burst;
    const outcome = await byHost.get(from)?.burst({ address: zone === null ? address : `${address}%${zone}`, port });
    schedule.ended(burst);
    measured.push({ ...burst, outcome: outcome ?? null });
    progress('measuring every pair of hosts', measured.length / bursts.length);
    await Promise.all(schedule.begin().map(run));
  };
  await Promise.all(schedule.begin().map(run));
  return measured;
}

/** Where the operator reaches a host best: the first of its addresses that leads there; `null` where none does. */
export function operatorAddress(cells: readonly ReachCell[], host: HostName, listen: readonly string[]): string | null {
  const reached = new Set(
    cells
      .filter(({ to, reach }) => to === host && reach.kind === 'reached' && reach.by.host === host)
      .map(({ address }) => canonicalIp(address)),
  );
  return listen.find((address) => reached.has(canonicalIp(address))) ?? null;
}

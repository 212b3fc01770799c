/** One session: from rounds to figures, ratios and verdicts. Pure. */
import { assert, present } from '../../protocol/assert.ts';
import type { BenchProcess, DecodeRun, LinkTimes, RoundTrips } from './arm.ts';
import { mean, pairedRatios, quantile, spreadOf, type Ratio, type Spread } from './statistics.ts';
import { atLeast, atMost, type Verdict } from './verdict.ts';

export const armNames = ['uncut', 'one agent', 'two agents'] as const;
export type ArmName = (typeof armNames)[number];

export type Rounds = Readonly<Record<ArmName, readonly DecodeRun[]>>;

/** What one arm came to; times are of one token, in milliseconds. */
export interface ArmFigures {
  readonly decodeTokensPerSecond: Spread;
  readonly intervalMs: { readonly p50: number; readonly p99: number };
  /** Of each stage, in ring order. */
  readonly computeMs: readonly Spread[];
  /** What a token takes beyond the stages' computing. */
  readonly restMs: Spread;
  readonly cpuMs: readonly ProcessCpu[];
  /** CPU of all stages beyond what the uncut model's process takes for a token of the same round. */
  readonly stageCpuBeyondUncutMs: Spread;
}

export interface ProcessCpu extends Pick<BenchProcess, 'role' | 'name'> {
  readonly ms: Spread;
}

export interface SingleSummary {
  readonly arms: Readonly<Record<ArmName, ArmFigures>>;
  readonly ratios: readonly Ratio[];
  /** What an edge between two agents adds to an edge inside one, per token and edge. */
  readonly edgeBetweenAgentsMs: Spread;
  readonly links: readonly LinkTimes[];
  readonly network: RoundTrips;
  readonly verdicts: readonly Verdict[];
}

export interface SingleMeasured {
  readonly rounds: Rounds;
  readonly processes: Readonly<Record<ArmName, readonly BenchProcess[]>>;
  /** Links of the ring over two agents. */
  readonly links: readonly LinkTimes[];
  readonly network: RoundTrips;
}

export function summarizeSingle(measured: SingleMeasured): SingleSummary {
  const { rounds, links, network } = measured;
  const arms = {
    uncut: armFigures('uncut', measured),
    'one agent': armFigures('one agent', measured),
    'two agents': armFigures('two agents', measured),
  };
  const ratios: readonly Ratio[] = [
    ratio('decode, one agent / uncut', rounds['one agent'], rounds.uncut),
    ratio('decode, two agents / one agent', rounds['two agents'], rounds['one agent']),
  ];
  const oneRest = rounds['one agent'].map(restMs);
  const edges = rounds['two agents'].map((round, index) => {
    return (restMs(round) - (oneRest[index] ?? 0)) / Math.max(1, links.length);
  });
  const summary = { arms, ratios, edgeBetweenAgentsMs: spreadOf(edges), links, network };
  return { ...summary, verdicts: verdictsOn(summary) };
}

/** Every arm draws the same tokens (X1): what is compared is the same work. */
export function requireSameTokens(rounds: Rounds): void {
  const texts = new Set(armNames.flatMap((name) => rounds[name].map(({ tokens }) => tokens.join())));
  assert(texts.size === 1, 'X1: every arm and every round draws the same tokens');
}

function armFigures(name: ArmName, { rounds, processes }: SingleMeasured): ArmFigures {
  const own = rounds[name];
  const intervals = own.flatMap(({ intervalsMs }) => intervalsMs);
  const stages = present(own[0], 'there is a round').computeMs.length;
  const computing = (process: BenchProcess): boolean => process.role === 'stage' || process.role === 'model';
  const stageCpu = own.map(({ cpuMs }) =>
    processes[name].reduce((sum, process, index) => sum + (computing(process) ? (cpuMs[index] ?? 0) : 0), 0),
  );
  return {
    decodeTokensPerSecond: spreadOf(own.map(decodeSpeed)),
    intervalMs: { p50: quantile(intervals, 0.5), p99: quantile(intervals, 0.99) },
    computeMs: Array.from({ length: stages }, (_, stage) =>
      spreadOf(own.map(({ computeMs }) => computeMs[stage] ?? 0)),
    ),
    restMs: spreadOf(own.map(restMs)),
    cpuMs: processes[name].map(({ role, name: process }, index) => {
      return { role, name: process, ms: spreadOf(own.map(({ cpuMs }) => cpuMs[index] ?? 0)) };
    }),
    stageCpuBeyondUncutMs: spreadOf(stageCpu.map((ms, round) => ms - (rounds.uncut[round]?.cpuMs[0] ?? 0))),
  };
}

const decodeSpeed = ({ intervalsMs }: DecodeRun): number => 1000 / mean(intervalsMs);
const restMs = ({ intervalsMs, computeMs }: DecodeRun): number =>
  mean(intervalsMs) - computeMs.reduce((sum, ms) => sum + ms, 0);

const ratio = (name: string, numerator: readonly DecodeRun[], denominator: readonly DecodeRun[]): Ratio => ({
  name,
  spread: spreadOf(pairedRatios(numerator.map(decodeSpeed), denominator.map(decodeSpeed))),
});

type Judged = Omit<SingleSummary, 'verdicts'>;

/** The targets, on a quiet machine with `decode: fast`. */
function verdictsOn({ arms, ratios, links, network }: Judged): readonly Verdict[] {
  const [one, two] = ratios.map(({ name: figure, spread: found }) => ({ figure, found }));
  const agentCpu = (name: ArmName): Spread => busiest(arms[name].cpuMs.filter(({ role }) => role === 'agent'));
  // The edge home carries a token to the head's agent, which acknowledges it at once; other edges are acknowledged when
  // a stage has computed.
  const homes = links.filter(({ destination }) => destination === 0);
  const hop = 'hop and its acknowledgement beyond the network';
  return [
    atLeast(0.98, present(one, 'a ratio')),
    atLeast(0.97, present(two, 'a ratio')),
    atMost(1, { figure: 'agent CPU per token, 1 session', found: agentCpu('one agent'), unit: 'ms' }),
    atMost(1, {
      figure: 'agent CPU per token, 1 session, the busier of two',
      found: agentCpu('two agents'),
      unit: 'ms',
    }),
    ...homes.flatMap(({ ackP50Ms, ackP99Ms }) => [
      atMost(0.4, { figure: `${hop}, p50`, found: ackP50Ms - network.p50Ms.median, unit: 'ms' }),
      atMost(1.5, { figure: `${hop}, p99`, found: ackP99Ms - network.p99Ms.median, unit: 'ms' }),
    ]),
  ];
}

function busiest(processes: readonly ProcessCpu[]): Spread {
  const [most] = processes.map(({ ms }) => ms).sort((one, other) => other.median - one.median);
  return present(most, 'a ring has an agent');
}

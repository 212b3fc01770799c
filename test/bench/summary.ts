/** From rounds to figures, ratios and verdicts. Pure. */
import { assert, present } from '../../protocol/assert.ts';
import {
  armNames,
  type ArmName,
  type ArmRound,
  type BenchProcess,
  type LinkTimes,
  type Rounds,
  type RoundTrips,
} from './measurement.ts';
import { mean, pairedRatios, quantile, spreadOf, type Spread } from './statistics.ts';

/** What one arm came to; times are of one token, in milliseconds. */
export interface ArmFigures {
  readonly decodeTokensPerSecond: Spread;
  readonly prefillTokensPerSecond: Spread;
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

export interface Ratio {
  readonly name: string;
  readonly spread: Spread;
}

export interface Verdict {
  readonly figure: string;
  readonly found: number;
  readonly target: { readonly is: 'at least' | 'at most'; readonly value: number };
  readonly unit: '' | 'ms';
  readonly isMet: boolean;
}

export interface Summary {
  readonly arms: Readonly<Record<ArmName, ArmFigures>>;
  readonly ratios: readonly Ratio[];
  /** What an edge between two agents adds to an edge inside one, per token and edge. */
  readonly edgeBetweenAgentsMs: Spread;
  readonly links: readonly LinkTimes[];
  readonly network: RoundTrips;
  readonly verdicts: readonly Verdict[];
}

export interface Measured {
  readonly rounds: Rounds;
  readonly processes: Readonly<Record<ArmName, readonly BenchProcess[]>>;
  readonly promptTokens: number;
  /** Links of the ring over two agents. */
  readonly links: readonly LinkTimes[];
  readonly network: RoundTrips;
}

export function summarize(measured: Measured): Summary {
  const { rounds, links, network } = measured;
  const arms = {
    uncut: armFigures('uncut', measured),
    'one agent': armFigures('one agent', measured),
    'two agents': armFigures('two agents', measured),
  };
  const ratios: readonly Ratio[] = [
    ratio({ name: 'decode, one agent / uncut', of: decodeSpeed }, rounds['one agent'], rounds.uncut),
    ratio({ name: 'decode, two agents / one agent', of: decodeSpeed }, rounds['two agents'], rounds['one agent']),
    ratio({ name: 'prefill, one agent / uncut', of: prefillSpeed }, rounds['one agent'], rounds.uncut),
    ratio({ name: 'prefill, two agents / one agent', of: prefillSpeed }, rounds['two agents'], rounds['one agent']),
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
  const all = armNames.flatMap((name) => rounds[name]);
  const texts = new Set(all.map(({ decode, prefill }) => [...decode.tokens, prefill.token].join()));
  assert(texts.size === 1, 'X1: every arm and every round draws the same tokens');
}

function armFigures(name: ArmName, { rounds, processes, promptTokens }: Measured): ArmFigures {
  const own = rounds[name];
  const intervals = own.flatMap(({ decode }) => decode.intervalsMs);
  const stages = present(own[0], 'there is a round').decode.computeMs.length;
  const computing = (process: BenchProcess): boolean => process.role === 'stage' || process.role === 'model';
  const stageCpu = own.map(({ decode }) =>
    processes[name].reduce((sum, process, index) => sum + (computing(process) ? (decode.cpuMs[index] ?? 0) : 0), 0),
  );
  return {
    decodeTokensPerSecond: spreadOf(own.map(decodeSpeed)),
    prefillTokensPerSecond: spreadOf(own.map((round) => promptTokens * prefillSpeed(round))),
    intervalMs: { p50: quantile(intervals, 0.5), p99: quantile(intervals, 0.99) },
    computeMs: Array.from({ length: stages }, (_, stage) =>
      spreadOf(own.map(({ decode }) => decode.computeMs[stage] ?? 0)),
    ),
    restMs: spreadOf(own.map(restMs)),
    cpuMs: processes[name].map(({ role, name: process }, index) => {
      return { role, name: process, ms: spreadOf(own.map(({ decode }) => decode.cpuMs[index] ?? 0)) };
    }),
    stageCpuBeyondUncutMs: spreadOf(stageCpu.map((ms, round) => ms - (rounds.uncut[round]?.decode.cpuMs[0] ?? 0))),
  };
}

const decodeSpeed = ({ decode }: ArmRound): number => 1000 / mean(decode.intervalsMs);
/** Prompts a second: all arms have the same one. */
const prefillSpeed = ({ prefill }: ArmRound): number => 1000 / prefill.ms;
const restMs = ({ decode }: ArmRound): number =>
  mean(decode.intervalsMs) - decode.computeMs.reduce((sum, ms) => sum + ms, 0);

interface Compared {
  readonly name: string;
  /** The figure of a round: more is better. */
  readonly of: (round: ArmRound) => number;
}

const ratio = ({ name, of }: Compared, numerator: readonly ArmRound[], denominator: readonly ArmRound[]): Ratio => ({
  name,
  spread: spreadOf(pairedRatios(numerator.map(of), denominator.map(of))),
});

type Judged = Omit<Summary, 'verdicts'>;

/** The targets, on a quiet machine with `decode: fast`. */
function verdictsOn({ arms, ratios, links, network }: Judged): readonly Verdict[] {
  const [one, two] = ratios;
  const decode = (name: string, of: Ratio | undefined, value: number): Verdict => {
    const found = present(of, 'a ratio').spread.median;
    return verdict({ figure: `decode, ${name}`, found, target: { is: 'at least', value }, unit: '' });
  };
  const atMost = (figure: string, found: number, value: number): Verdict =>
    verdict({ figure, found, target: { is: 'at most', value }, unit: 'ms' });
  const agentCpu = (name: ArmName): number =>
    Math.max(...arms[name].cpuMs.filter(({ role }) => role === 'agent').map(({ ms }) => ms.median));
  // The edge home carries a token to the head's agent, which acknowledges it at once; other edges are acknowledged when
  // a stage has computed.
  const homes = links.filter(({ destination }) => destination === 0);
  return [
    decode('one agent / uncut', one, 0.98),
    decode('two agents / one agent', two, 0.97),
    atMost('agent CPU per token, one agent', agentCpu('one agent'), 1),
    atMost('agent CPU per token, the busier of two', agentCpu('two agents'), 1),
    ...homes.flatMap(({ ackP50Ms, ackP99Ms }) => [
      atMost('hop and its acknowledgement beyond the network, p50', ackP50Ms - network.p50Ms.median, 0.4),
      atMost('hop and its acknowledgement beyond the network, p99', ackP99Ms - network.p99Ms.median, 1.5),
    ]),
  ];
}

function verdict({ figure, found, target, unit }: Omit<Verdict, 'isMet'>): Verdict {
  const isMet = target.is === 'at least' ? found >= target.value : found <= target.value;
  return { figure, found, target, unit, isMet };
}

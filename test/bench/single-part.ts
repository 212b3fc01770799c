/** One session: the uncut model, the same model in two stages under one agent, and the same stages under two agents. */
import { present } from '../../protocol/assert.ts';
import type { Arm, RoundTrips } from './arm.ts';
import { baselineArm, baselineVerdicts } from './baseline.ts';
import type { BenchModelName } from './bench-models.ts';
import { withRing, withUncut, type BenchPlace, type Part } from './part.ts';
import { memoryUse } from './process-usage.ts';
import type { RingArm } from './ring-arm.ts';
import { roundTrips } from './round-trip.ts';
import { longWarmUps, runRounds } from './rounds.ts';
import { figureLines, hopLines, memoryLines, profileLines, type ProcessMemory } from './single-report.ts';
import { armNames, requireSameTokens, summarizeSingle, type ArmName, type SingleSummary } from './single-summary.ts';
import { quantile, spreadOf } from './statistics.ts';
import type { UncutArm } from './uncut-arm.ts';
import { beside } from './verdict.ts';

/** Round trips after each round: at some 50 microseconds they take no time, and their 99th percentile is one of five. */
const tripsEachRound = 500;
/** Tokens beyond the prompt and what is drawn. */
const spareTokens = 64;

export const singlePart: Part = async (place) => {
  const { summary, memory, others } = await measured(place, 'bench');
  const isMissed = summary.verdicts.some(({ isMet }) => isMet === false);
  return {
    figures: { ...summary, memory },
    blocks: [
      figureLines(summary),
      hopLines(summary),
      memoryLines(memory),
      ...(isMissed ? [profileLines(summary)] : []),
    ],
    verdicts: [...summary.verdicts, ...baselineVerdicts(others, summary.arms['one agent'].decodeTokensPerSecond)],
  };
};

/** The price of a token is fixed: beside it, what it comes to where a token takes some four times as long. */
export const largePart: Part = async (place) => {
  const { summary } = await measured({ ...place, baseline: null }, 'large');
  return {
    figures: summary,
    blocks: [['The same with the model “large”, four times the parameters:', ...figureLines(summary)]],
    verdicts: summary.ratios.map(({ name, spread }) => beside({ figure: `${name}, large model`, found: spread })),
  };
};

interface Found {
  readonly summary: SingleSummary;
  readonly memory: readonly ProcessMemory[];
  /** Tokens per second of somebody else's command. */
  readonly others: readonly number[];
}

async function measured(place: BenchPlace, name: BenchModelName): Promise<Found> {
  const model = await place.models.model(name);
  const contextTokens = place.sizes.tokens + spareTokens;
  const ring = { model, contextTokens, stages: 2, sessions: 1 };
  return withRing(place, { ...ring, name: 'one agent', agents: 1 }, (oneAgent) =>
    withRing(place, { ...ring, name: 'two agents', agents: 2 }, (twoAgents) =>
      withUncut(place, { model, contextTokens }, (uncut) =>
        compared(place, { name, uncut, 'one agent': oneAgent, 'two agents': twoAgents }),
      ),
    ),
  );
}

interface SingleArms extends Readonly<Record<ArmName, Arm>> {
  readonly name: string;
  readonly uncut: UncutArm;
  readonly 'two agents': RingArm;
}

async function compared({ sizes, context, baseline }: BenchPlace, arms: SingleArms): Promise<Found> {
  const { rounds, tokens } = sizes;
  const order = { prompt: [1], tokens };
  const trips: (readonly number[])[] = [];
  const others = baselineArm(baseline, context.signal);
  const found = await runRounds(
    {
      what: `one session, model “${arms.name}”`,
      rounds,
      warmUps: longWarmUps(sizes),
      arms: armNames.map((name) => ({
        name,
        run: async (round) => {
          const run = await arms[name].decode(order);
          if (name === 'uncut' && round > 0) {
            trips.push(await roundTrips(arms.uncut.echoPort, tripsEachRound));
            await others.run();
          }
          return run;
        },
      })),
    },
    context,
  );
  const [uncut, one, two] = found.map((runs) => present(runs, 'each arm has its rounds'));
  const measuredRounds = {
    uncut: present(uncut, 'the first arm'),
    'one agent': present(one, 'the second arm'),
    'two agents': present(two, 'the third arm'),
  };
  requireSameTokens(measuredRounds);
  const processes = {
    uncut: arms.uncut.processes,
    'one agent': arms['one agent'].processes,
    'two agents': arms['two agents'].processes,
  };
  return {
    summary: summarizeSingle({
      ...{ rounds: measuredRounds, processes },
      ...{ links: await arms['two agents'].links(), network: networkOf(trips) },
    }),
    memory: memoryOf(arms),
    others: others.tokensPerSecond,
  };
}

const networkOf = (trips: readonly (readonly number[])[]): RoundTrips => ({
  p50Ms: spreadOf(trips.map((times) => quantile(times, 0.5))),
  p99Ms: spreadOf(trips.map((times) => quantile(times, 0.99))),
});

/** Each process once: the head's agent serves two arms. */
function memoryOf(arms: SingleArms): readonly ProcessMemory[] {
  const processes = new Map(
    armNames.flatMap((name) =>
      arms[name].processes.map((process) => [
        process.pid,
        { ...process, name: process.role === 'stage' ? `${process.name}, ${name}` : process.name },
      ]),
    ),
  );
  return [...processes.values()].map(({ name, role, pid }) => ({ name, role, pid, ...memoryUse(pid) }));
}

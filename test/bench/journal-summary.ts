/** From rounds to figures, ratios and verdicts on the journal. Pure. */
import { assert, present } from '../../protocol/assert.ts';
import {
  controlArm,
  countText,
  emptyArm,
  memoryArm,
  type Held,
  type JournalArm,
  type JournalMeasurement,
  type JournalTrace,
  type MeasuredAppends,
  type MeasuredRing,
} from './journal-measurement.ts';
import { pairedRatios, spreadOf, type Ratio, type Spread } from './statistics.ts';
import { atLeast, atMost, type Verdict } from './verdict.ts';

export interface JournalFigures {
  readonly name: string;
  readonly isOnDisk: boolean;
  readonly records: Held;
  readonly perSecond: Spread;
  /** Of the agent for a token, or of the process for an append: what a busy machine changes least. */
  readonly cpuMs: Spread;
}

export interface JournalSummary {
  /** Tokens per second. */
  readonly decode: readonly JournalFigures[];
  /** Appends per second. */
  readonly appends: readonly JournalFigures[];
  readonly ratios: readonly Ratio[];
  readonly trace: JournalTrace;
  readonly verdicts: readonly Verdict[];
}

const growthTarget = 0.99;
const appendTarget = 0.95;
const durabilityTarget = 0.98;

export function summarizeJournal({ rings, appends, trace }: JournalMeasurement): JournalSummary {
  for (const { arm, held } of [...rings, ...appends]) requireHeld(arm, held);
  requireSameTokens(rings);
  const speeds = rings.map(({ rounds }) => rounds.map(({ tokensPerSecond }) => tokensPerSecond));
  const speedOf = ({ name }: JournalArm): readonly number[] =>
    present(speeds[rings.findIndex(({ arm }) => arm.name === name)], 'the arm was measured');
  const judged = [
    ...rings
      .filter(({ arm }) => arm.records > 0)
      .map(({ arm }) => ({
        ...ratioOf(`decode, ${arm.name} records / empty`, speedOf(arm), speedOf(emptyArm)),
        target: growthTarget,
      })),
    {
      ...ratioOf('decode, empty on disk / in memory', speedOf(emptyArm), speedOf(memoryArm)),
      target: durabilityTarget,
    },
    ...appendRatios(appends),
  ];
  const controls = rings
    .filter(({ arm }) => arm.name === controlArm.name)
    .map(({ arm }) => ratioOf('decode, empty once more / empty (chance)', speedOf(arm), speedOf(emptyArm)));
  return {
    decode: rings.map((ring) =>
      figuresOf(ring, { speeds: speedOf(ring.arm), cpuMs: ring.rounds.map(({ cpuMs }) => cpuMs) }),
    ),
    appends: appends.map((each) => figuresOf(each, { speeds: each.appendsPerSecond, cpuMs: each.cpuMs })),
    ratios: [...controls, ...judged.map(({ name, spread }) => ({ name, spread }))],
    trace,
    verdicts: [
      ...judged.map(({ name, spread, target }) => atLeast(target, { figure: name, found: spread })),
      none(`directories listed in ${trace.tokens} tokens`, trace.calls.listings.length),
      none(`looks at the journal's folder in ${trace.tokens} tokens`, trace.calls.looks.length),
    ],
  };
}

/** On disk and in memory: there nothing but what the journal computes is left to see. */
function appendRatios(appends: readonly MeasuredAppends[]): readonly (Ratio & { readonly target: number })[] {
  return [true, false].map((isOnDisk) => {
    const [empty, full] = appends.filter(({ arm }) => arm.isOnDisk === isOnDisk);
    assert(empty !== undefined && full !== undefined && empty.arm.records === 0, 'an empty one, then a full one');
    const name = `appends ${isOnDisk ? 'on disk' : 'in memory'}, ${countText(full.arm.records)} records / empty`;
    return {
      ...ratioOf(name, full.appendsPerSecond, empty.appendsPerSecond),
      target: appendTarget,
    };
  });
}

/** J4 takes out what has had its time: what an arm is to hold has to be there from the first round to the last. */
function requireHeld({ name, records }: JournalArm, { before, after }: Held): void {
  assert(before >= records && after >= before, `J4: nothing has left the journal of the arm “${name}”`);
}

/** Every arm draws the same tokens (X1): what is compared is the same work. */
function requireSameTokens(rings: readonly MeasuredRing[]): void {
  const texts = new Set(
    rings.flatMap(({ rounds }) => rounds.flatMap(({ tokens }) => tokens.map((stretch) => stretch.join()))),
  );
  assert(texts.size === 1, 'X1: every arm and every stretch draws the same tokens');
}

interface Rounds {
  readonly speeds: readonly number[];
  readonly cpuMs: readonly number[];
}

const figuresOf = (
  { arm, held }: { readonly arm: JournalArm; readonly held: Held },
  { speeds, cpuMs }: Rounds,
): JournalFigures => ({
  ...{ name: arm.name, isOnDisk: arm.isOnDisk, records: held },
  ...{ perSecond: spreadOf(speeds), cpuMs: spreadOf(cpuMs) },
});

const ratioOf = (name: string, numerators: readonly number[], denominators: readonly number[]): Ratio => ({
  name,
  spread: spreadOf(pairedRatios(numerators, denominators)),
});

const none = (figure: string, found: number): Verdict => atMost(0, { figure, found });

/** A part of the benchmark: rings that are loaded for it, rounds, and what they come to. */
import { P4Error } from '../../protocol/errors.ts';
import type { CommandContext } from '../../provisioner/command.ts';
import type { LocalRings } from '../fixture/local-rings.ts';
import type { BenchSizes } from './bench-options.ts';
import type { BenchModel, BenchModels } from './bench-models.ts';
import { RingArm, type RingArmOrder } from './ring-arm.ts';
import { UncutArm } from './uncut-arm.ts';
import type { Verdict } from './verdict.ts';

export const partNames = [
  'single',
  'large',
  'sessions',
  'prefill',
  'arrival',
  'stages',
  'turns',
  'modes',
  'metrics',
  'decay',
] as const;
export type PartName = (typeof partNames)[number];

/** Those that run unless others are asked for: the one that takes as long as all of these is not among them. */
export const usualParts: readonly PartName[] = partNames.filter((name) => name !== 'decay');

export interface BenchPlace {
  readonly rings: LocalRings;
  readonly models: BenchModels;
  readonly sizes: BenchSizes;
  /** A command of somebody else's that prints tokens per second. */
  readonly baseline: string | null;
  readonly context: CommandContext;
}

export interface PartReport {
  /** What was measured, for programs: plain values. */
  readonly figures: object;
  /** For people, with a line between them. */
  readonly blocks: readonly (readonly string[])[];
  readonly verdicts: readonly Verdict[];
}

/** Leaves no stage and no process of its own behind. */
export type Part = (place: BenchPlace) => Promise<PartReport>;

/** Loads a ring, uses it and takes it down. One that failed is left to the end of its agents. */
export async function withRing<Result>(
  { rings, context }: BenchPlace,
  order: RingArmOrder,
  use: (ring: RingArm) => Promise<Result>,
): Promise<Result> {
  context.terminal.progress(`loading: ${order.name}`, 0);
  const ring = await RingArm.load(rings, order, context.signal);
  const result = await use(ring);
  await ring.close();
  return result;
}

/** The same with several rings at once. */
export async function withRings<Result>(
  place: BenchPlace,
  orders: readonly RingArmOrder[],
  use: (rings: readonly RingArm[]) => Promise<Result>,
): Promise<Result> {
  const [order, ...others] = orders;
  if (order === undefined) return use([]);
  return withRing(place, order, (ring) => withRings(place, others, (rings) => use([ring, ...rings])));
}

/** The uncut model in a process of its own, with one thread. */
export async function withUncut<Result>(
  { context: { signal } }: BenchPlace,
  { model: { path, layers }, contextTokens }: { readonly model: BenchModel; readonly contextTokens: number },
  use: (uncut: UncutArm) => Promise<Result>,
): Promise<Result> {
  const uncut = await UncutArm.open({ path, layers, contextTokens, threads: 1 }, signal);
  try {
    return await use(uncut);
  } finally {
    await uncut.close();
  }
}

/** @throws INVALID_ARGUMENT */
export function partsNamed(option: string, text: string): readonly PartName[] {
  const words = text.split(',').map((word) => word.trim());
  const unknown = words.find((word) => !partNames.some((name) => name === word));
  if (unknown !== undefined)
    throw new P4Error('INVALID_ARGUMENT', { option, found: unknown, expected: partNames.join(', ') });
  return partNames.filter((name) => words.includes(name));
}

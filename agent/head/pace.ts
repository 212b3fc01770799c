/**
 * How long a decode takes by the number of its rows, as the slowest stage of the ring says. What follows from it: into how
 * many groups sessions that decode are put, and how many rows of a prompt go round beside them.
 *
 * One point for each doubling of rows, the latest samples weighing most. Between points time is taken to grow evenly,
 * beyond the last in proportion to the rows, which is never too little.
 */
import { noStep, type StepTime } from '../../protocol/hop-frame.ts';
import { limits } from '../../protocol/limits.ts';

/** By the binary logarithm of their rows; 0 rows where nothing is known yet. */
export type Pace = readonly StepTime[];

const pointOf = (rows: number): number => Math.floor(Math.log2(Math.min(rows, limits.cpuDecodeRows)));
/** Of a new sample against what was known. */
const sampleWeight = 1 / 8;

export const unknownPace: Pace = Array.from({ length: pointOf(limits.cpuDecodeRows) + 1 }, () => noStep);

/** Takes in what a frame that came home has been through. */
export function observed(pace: Pace, step: StepTime): Pace {
  if (step.rows === 0) return pace;
  const at = pointOf(step.rows);
  const known = pace[at] ?? noStep;
  const mixed = (old: number, found: number): number => old + (found - old) * sampleWeight;
  const point = known.rows === 0 ? step : { rows: mixed(known.rows, step.rows), us: mixed(known.us, step.us) };
  return pace.with(at, point);
}

/** @returns microseconds that a decode of so many rows takes; `null` when no decode was seen yet */
export function stepUs(pace: Pace, rows: number): number | null {
  let below: StepTime | null = null;
  for (const point of pace) {
    if (point.rows === 0) continue;
    if (point.rows >= rows) return below === null ? point.us : between(below, point, rows);
    below = point;
  }
  return below === null ? null : (below.us * rows) / below.rows;
}

function between(below: StepTime, above: StepTime, rows: number): number {
  const share = (rows - below.rows) / (above.rows - below.rows);
  return below.us + Math.max(0, above.us - below.us) * share;
}

export interface Grouping {
  /** Sessions of one group, at least 1. */
  readonly size: number;
  /** Groups that go round at once. */
  readonly count: number;
  /** Whether a group's rows, of which there are several, are decoded one after the other instead of together. */
  readonly alone: boolean;
}

export interface Decoders {
  /** Sessions that decode, at least 1. */
  readonly decoders: number;
  /** Of the ring. */
  readonly stages: number;
  /** Whether rows may be decoded by themselves, without one beside them. */
  readonly mayBeAlone: boolean;
}

/** A smaller group has to save so much of the time before it is worth its frames. */
const worthwhile = 0.9;

/**
 * As many groups as there are stages keep each of them busy. More of them, with fewer rows each, are better where a decode
 * of more rows costs more than it saves. On a CPU one row may be far cheaper than its share of two, or of four: then a group
 * has one frame all the same, and its rows are decoded one after the other.
 */
export function grouping(pace: Pace, of: Decoders): Grouping {
  const together = groupingTogether(pace, of);
  const { stages, mayBeAlone } = of;
  if (!mayBeAlone) return together;
  const fewest = fewestGroups(of);
  const alone = { ...fewest, alone: fewest.size > 1 };
  if (together.size === 1) return alone;
  const [togetherUs, aloneUs] = [roundUs(pace, together, stages), roundUs(pace, alone, stages)];
  // What was never seen is tried.
  if (togetherUs === null) return together;
  return aloneUs === null || aloneUs < togetherUs * worthwhile ? alone : together;
}

function fewestGroups({ decoders, stages }: Decoders): Grouping {
  const count = Math.max(Math.min(stages, decoders), Math.ceil(decoders / limits.cpuDecodeRows));
  return { size: Math.ceil(decoders / count), count, alone: false };
}

function groupingTogether(pace: Pace, of: Decoders): Grouping {
  const { decoders, stages } = of;
  let best = fewestGroups(of);
  let bestUs = roundUs(pace, best, stages);
  if (bestUs === null) return best;
  for (let { size, count } = best; size > 1;) {
    count += 1;
    size = Math.ceil(decoders / count);
    const us = roundUs(pace, { size, count, alone: false }, stages);
    if (us === null || us > bestUs * worthwhile) continue;
    best = { size, count, alone: false };
    bestUs = us;
  }
  return best;
}

/** What each stage takes for one token of every session; `null` where such a group was never seen. */
function roundUs(pace: Pace, group: Grouping, stages: number): number | null {
  const us = isKnown(pace, group.alone ? 1 : group.size) ? groupUs(pace, group) : null;
  return us === null ? null : us * Math.max(group.count, stages);
}

/** What a stage takes for a group; `null` when no decode was seen yet. */
function groupUs(pace: Pace, { size, alone }: Pick<Grouping, 'size' | 'alone'>): number | null {
  if (!alone) return stepUs(pace, size);
  const us = stepUs(pace, 1);
  return us === null ? null : us * size;
}

const isKnown = (pace: Pace, rows: number): boolean => (pace[pointOf(rows)]?.rows ?? 0) > 0;

/**
 * Rows of a prompt that go round by themselves, once for each round of the groups. By themselves these come home after a step
 * for each of them, or for each stage where stages are more. Two at least: of a prompt's rows, the journal knows of the last
 * alone whether it had company (R3).
 */
export function chunkRows(pace: Pace, group: Grouping, stages: number): number {
  const mostSteps = limits.slowestBeside * Math.max(group.count, stages) - group.count;
  return Math.max(2, fittingRows(pace, { beside: 0, usualUs: groupUs(pace, group), mostSteps }));
}

/** Rows of a prompt that are decoded together with a group of sessions; 0 where they would hold it up. */
export function chunkRowsBeside(pace: Pace, { size, alone }: Pick<Grouping, 'size' | 'alone'>): number {
  if (alone) return 0;
  return fittingRows(pace, { beside: size, usualUs: stepUs(pace, size), mostSteps: limits.slowestBeside });
}

interface Fitting {
  readonly beside: number;
  /** What a stage takes for a group without it. */
  readonly usualUs: number | null;
  /** What the decode may take, as a multiple of that. */
  readonly mostSteps: number;
}

function fittingRows(pace: Pace, { beside, usualUs, mostSteps }: Fitting): number {
  if (usualUs === null) return limits.firstChunkRows;
  let rows = limits.cpuDecodeRows - beside;
  while (rows > 0 && (stepUs(pace, beside + rows) ?? 0) > usualUs * mostSteps) rows -= 1;
  return rows;
}

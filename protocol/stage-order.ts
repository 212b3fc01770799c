/**
 * Whether the stages of a plan cover the layers in order: from 0, each exactly once.
 *
 * Works on what could be read: a stage whose layers are illegible is skipped, and its neighbours are not compared
 * across it.
 */
import { layersText, type LayerRange } from './plan.ts';

/** One stage's trouble, in a fault's words. */
export interface OrderTrouble {
  readonly stage: number;
  readonly found: string;
  readonly expected: string;
}

/** @param ranges each stage's layers, `null` where illegible */
export const orderTroubles = (ranges: readonly (LayerRange | null)[]): readonly OrderTrouble[] =>
  ranges.flatMap((range, stage) => {
    const before = stage === 0 ? undefined : ranges[stage - 1];
    if (range === null || before === null) return [];
    const start = before === undefined ? 0 : before.last + 1;
    if (range.first === start) return repetition(ranges, stage);
    const place = before === undefined ? '' : `, where stage ${stage - 1} (${layersText(before)}) leaves off`;
    const found = `${layersText(range)}${departure(ranges, { stage, range, start })}`;
    return [{ stage, found, expected: `a slice that starts at layer ${start}${place}` }];
  });

/** A slice that follows its neighbour well may still repeat an earlier one, where that neighbour stands wrong. */
function repetition(ranges: readonly (LayerRange | null)[], stage: number): readonly OrderTrouble[] {
  const range = ranges[stage];
  const twin = range === undefined || range === null ? -1 : twinOf(ranges, stage, range);
  if (range === undefined || range === null || twin === -1) return [];
  return [
    { stage, found: `${layersText(range)}, the same layers as stage ${twin}`, expected: 'each layer on one stage' },
  ];
}

interface Misplaced {
  readonly stage: number;
  readonly range: LayerRange;
  /** The layer that should come first. */
  readonly start: number;
}

function departure(ranges: readonly (LayerRange | null)[], { stage, range, start }: Misplaced): string {
  const twin = twinOf(ranges, stage, range);
  if (twin !== -1) return `, the same layers as stage ${twin}`;
  const shared = ranges.findIndex((other, index) => index < stage && other !== null && overlaps(other, range));
  if (shared !== -1) return `, of which stage ${shared} has some already`;
  const gap = { first: start, last: range.first - 1 };
  const isHeldElsewhere = ranges.some((other) => other !== null && overlaps(other, gap));
  if (range.first < start || isHeldElsewhere) return ', out of order';
  return `, so ${layerWords(gap)} on no stage`;
}

const twinOf = (ranges: readonly (LayerRange | null)[], stage: number, range: LayerRange): number =>
  ranges.findIndex((other, index) => index < stage && other?.first === range.first && other.last === range.last);

const overlaps = (one: LayerRange, other: LayerRange): boolean => one.first <= other.last && other.first <= one.last;

/** `layer 4 is` or `layers 4-6 are`. */
export const layerWords = (range: LayerRange): string =>
  range.first === range.last ? `layer ${range.first} is` : `layers ${layersText(range)} are`;

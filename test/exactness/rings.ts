/** The rings that a model can be cut into, and a seeded choice of them. */
import { sliceFault } from '../../model/layer-cut.ts';
import type { ModelFile } from '../../model/model-file.ts';
import { randomBits } from '../../model/random-weights.ts';
import { layersText, type LayerRange } from '../../protocol/plan.ts';

export type RingCut = readonly LayerRange[];

/** Every slice that is legal by itself, the whole model not counted. */
export function legalSlices(model: ModelFile): LayerRange[] {
  const ranges: LayerRange[] = [];
  for (let first = 0; first < model.layers; first += 1) {
    for (let last = first; last < model.layers; last += 1) {
      const isWhole = first === 0 && last === model.layers - 1;
      if (!isWhole && sliceFault(model, { first, last }) === null) ranges.push({ first, last });
    }
  }
  return ranges;
}

/** Every ring of so many stages whose slices are all legal. */
export function legalRings(model: ModelFile, stages: number): RingCut[] {
  const legal = new Set(legalSlices(model).map(layersText));
  const rings: RingCut[] = [];
  const extend = (ring: RingCut, first: number): void => {
    const left = stages - ring.length;
    if (left === 0) {
      if (first === model.layers) rings.push(ring);
      return;
    }
    for (let last = first; last < model.layers; last += 1) {
      if (legal.has(layersText({ first, last }))) extend([...ring, { first, last }], last + 1);
    }
  };
  extend([], 0);
  return rings;
}

/** A ring of as many stages as there can be; one stage where there is no cut. */
export function finestRing(model: ModelFile): RingCut {
  const legal = legalSlices(model);
  /** The finest way from each layer to the end, from the last layer on; `null` where there is none. */
  const ways: (RingCut | null)[] = [];
  ways[model.layers] = [];
  for (let first = model.layers - 1; first >= 0; first -= 1) {
    const longer = legal
      .filter((slice) => slice.first === first)
      .flatMap((slice): RingCut[] => {
        const rest = ways[slice.last + 1] ?? null;
        return rest === null ? [] : [[slice, ...rest]];
      })
      .sort((left, right) => right.length - left.length);
    ways[first] = longer[0] ?? null;
  }
  return ways[0] ?? [{ first: 0, last: model.layers - 1 }];
}

/** So many of the rings, none twice, chosen by a seed. */
export function sampleRings(rings: readonly RingCut[], count: number, seed: number): RingCut[] {
  const next = randomBits(seed, rings.length);
  const left = [...rings];
  return Array.from({ length: Math.min(count, rings.length) }, () => left.splice(next() % left.length, 1)).flat();
}

export const ringText = (ring: RingCut): string => ring.map(layersText).join(' | ');

/**
 * Which slices of a model compute exactly what the whole does, and why the others do not.
 */
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { layerCount, layersText, type LayerRange } from '../protocol/plan.ts';
import { architectureKey, architectureRule, type ArchitectureRule } from './architecture.ts';
import { numbersOf, unsignedOf, type GgufValue } from './gguf-value.ts';
import type { ModelFile } from './model-file.ts';
import { slidingWindowLayers } from './sliding-window.ts';

export const isWhole = (model: ModelFile, { first, last }: LayerRange): boolean =>
  first === 0 && last === model.layers - 1;

/**
 * The layers after which the model may be cut in two, in ascending order. Of a ring of more stages every slice must be
 * legal in itself too: `sliceFault`.
 */
export function legalCuts(model: ModelFile): readonly number[] {
  const cuts: number[] = [];
  for (let layer = 0; layer < model.layers - 1; layer += 1) {
    const head = sliceFault(model, { first: 0, last: layer });
    const tail = sliceFault(model, { first: layer + 1, last: model.layers - 1 });
    if (head === null && tail === null) cuts.push(layer);
  }
  return cuts;
}

/** Why a slice would not be exact, as one clause; `null` when it is. */
export function sliceFault(model: ModelFile, range: LayerRange): string | null {
  const { first, last } = range;
  if (!Number.isInteger(first) || !Number.isInteger(last) || first < 0 || last < first || last >= model.layers) {
    return `the model has layers 0-${model.layers - 1}`;
  }
  if (isWhole(model, range)) return null;
  const rule = architectureRule(model.architecture);
  return windowFault(model, range) ?? attentionScaleFault(model, range, rule) ?? generalFault(model);
}

/**
 * Confirms that a slice is legal.
 *
 * @throws MODEL_CUT_ILLEGAL naming the layers, the reason, the legal slices nearest to them, and all legal cuts
 */
export function requireLegalSlice(model: ModelFile, range: LayerRange): void {
  const reason = sliceFault(model, range);
  if (reason === null) return;
  throw new P4Error('MODEL_CUT_ILLEGAL', {
    file: model.shards[0]?.path ?? '',
    layers: layersText(range),
    reason,
    nearest: nearestLegal(model, range).map(layersText),
    cutsAfter: legalCuts(model).map(String),
  });
}

/** Without a sliding-window layer llama.cpp ends the process: it has chosen a cache for them by then. */
function windowFault(model: ModelFile, { first, last }: LayerRange): string | null {
  const windowed = slidingWindowLayers(model);
  if (windowed === null || windowed.slice(first, last + 1).includes(true)) return null;
  return 'none of its layers has a sliding window, and llama.cpp cannot run such a slice of this model';
}

/** The layer count at which llama.cpp takes gemma3 for its 27B model, which scales attention by another rule. */
const layersOfGemma3At27B = 62;

function attentionScaleFault(model: ModelFile, range: LayerRange, rule: ArchitectureRule): string | null {
  const isAt62 = layerCount(range) === layersOfGemma3At27B;
  if (!rule.scalesAttentionAt62Layers || isAt62 === (model.layers === layersOfGemma3At27B)) return null;
  const [heads] = numbersOf(valueOf(model, 'attention.head_count'), limits.modelLayers);
  const perHead = Math.floor(model.hiddenWidth / (heads ?? 1));
  if (perHead === (unsignedOf(valueOf(model, 'attention.key_length')) ?? perHead)) return null;
  const count = layersOfGemma3At27B;
  return `llama.cpp scales attention by another rule when it loads ${count} layers, and nothing in the file can say which`;
}

/** What holds for every cut of a model, wherever it is. */
function generalFault(model: ModelFile): string | null {
  if ((unsignedOf(valueOf(model, 'nextn_predict_layers')) ?? 0) > 0) {
    return 'the model has layers that predict further tokens, which need the state of earlier layers';
  }
  if (numbersOf(valueOf(model, 'deepstack_mapping'), limits.modelLayers).some((index) => index >= 0)) {
    return 'the model feeds image features into later layers';
  }
  return null;
}

const valueOf = (model: ModelFile, key: string): GgufValue | undefined =>
  model.metadata.get(architectureKey(model, key));

/** The smallest legal slices that hold the wanted layers: grown downwards, upwards, or else both ways. */
function nearestLegal(model: ModelFile, { first, last }: LayerRange): readonly LayerRange[] {
  const end = model.layers - 1;
  const from = Math.min(Math.max(first, 0), end);
  const to = Math.min(Math.max(last, from), end);
  const down = Array.from({ length: from + 1 }, (_, grown) => ({ first: from - grown, last: to }));
  const up = Array.from({ length: end - to + 1 }, (_, grown) => ({ first: from, last: to + grown }));
  const isLegal = (range: LayerRange): boolean => sliceFault(model, range) === null;
  const nearest = [down.find(isLegal), up.find(isLegal)].filter((range) => range !== undefined);
  return nearest.length > 0 ? nearest : [{ first: 0, last: end }];
}

/**
 * A slice's metadata: the model's, cut to the slice's layers, and what says which slice it is.
 *
 * Keys nobody here knows stay as they are, except lists in the architecture's namespace that have one element a layer:
 * those are cut. A whole model keeps every value.
 */
import { assert } from '../protocol/assert.ts';
import type { SliceId } from '../protocol/ids.ts';
import { layerCount, type LayerRange } from '../protocol/plan.ts';
import { architectureKey, architectureRule } from './architecture.ts';
import { cutArray, f32, flags, text, u32, unsignedOf, type GgufMetadata, type GgufValue } from './gguf-value.ts';
import type { ModelFile } from './model-file.ts';
import type { SlicePlace } from './slice-plan.ts';
import { slidingWindowKey, slidingWindowLayers } from './sliding-window.ts';

/** What a slice's file says about itself. */
export const sliceKeys = {
  /** Text: the slice id. */
  id: 'p4.slice.id',
  /** u32: first and last layer, counted in the whole model. */
  first: 'p4.slice.first',
  last: 'p4.slice.last',
  /** f32: what the hidden state is divided by before it goes in. Absent: nothing. */
  inputDivisor: 'p4.slice.input_divisor',
  /** u32: layers of the whole model. */
  modelLayers: 'p4.model.layers',
  /** Text: the whole model's hash. */
  modelHash: 'p4.model.sha256',
} as const;

/** Rows of the embedding matrix in a slice that sees no token ids; llama.cpp wants some. */
export const middleVocabularySize = 32;

export interface SliceMetadataInput {
  readonly model: ModelFile;
  readonly modelHash: string;
  readonly range: LayerRange;
  readonly place: SlicePlace;
  readonly id: SliceId;
  readonly alignment: number;
}

export function sliceMetadata(input: SliceMetadataInput): GgufMetadata {
  const { model, range, place } = input;
  const metadata = new Map<string, GgufValue>();
  for (const [key, value] of model.metadata) {
    if (place === 'middle' && key.startsWith('tokenizer.')) continue;
    metadata.set(key, place === 'whole' ? value : cutValue(model, range, { key, value }));
  }
  if (metadata.has('general.alignment')) metadata.set('general.alignment', u32(input.alignment));
  if (place !== 'whole') writeCut(metadata, input);
  writeIdentity(metadata, input);
  return metadata;
}

/** Lists in the architecture's namespace with a meaning of their own, whatever their length. */
const notPerLayer: ReadonlySet<string> = new Set(['rope.dimension_sections']);

function cutValue(model: ModelFile, range: LayerRange, entry: { key: string; value: GgufValue }): GgufValue {
  const { key, value } = entry;
  const prefix = architectureKey(model, '');
  const isPerLayer = key.startsWith(prefix) && !notPerLayer.has(key.slice(prefix.length));
  if (!isPerLayer || value.kind !== 'array' || value.length !== model.layers) return value;
  return cutArray(value, range.first, layerCount(range));
}

/** Counts of layers that lead the model and are unlike the rest: a later slice has what is left of them. */
const leadingCounts = ['leading_dense_block_count'];

function writeCut(metadata: Map<string, GgufValue>, { model, range, place }: SliceMetadataInput): void {
  const count = layerCount(range);
  const rule = architectureRule(model.architecture);
  metadata.set(architectureKey(model, 'block_count'), u32(count));
  for (const key of leadingCounts.map((name) => architectureKey(model, name))) {
    const leading = unsignedOf(metadata.get(key));
    if (leading !== null) metadata.set(key, u32(Math.min(Math.max(leading - range.first, 0), count)));
  }
  const windowed = slidingWindowLayers(model);
  if (windowed !== null) {
    assert(windowed.length === model.layers, 'the window list has one flag a layer');
    metadata.set(architectureKey(model, slidingWindowKey), flags(windowed.slice(range.first, range.last + 1)));
  }
  if (place === 'middle') {
    metadata.set('tokenizer.ggml.model', text('no_vocab'));
    metadata.set(architectureKey(model, 'vocab_size'), u32(middleVocabularySize));
  }
  if (place === 'first') return;
  for (const key of rule.inputFactors.map((name) => architectureKey(model, name))) {
    if (metadata.has(key)) metadata.set(key, f32(1));
  }
  if (rule.inputDivisor !== null) metadata.set(sliceKeys.inputDivisor, f32(rule.inputDivisor(model.hiddenWidth)));
}

function writeIdentity(metadata: Map<string, GgufValue>, { model, modelHash, range, id }: SliceMetadataInput): void {
  metadata.set(sliceKeys.id, text(id));
  metadata.set(sliceKeys.first, u32(range.first));
  metadata.set(sliceKeys.last, u32(range.last));
  metadata.set(sliceKeys.modelLayers, u32(model.layers));
  metadata.set(sliceKeys.modelHash, text(modelHash));
}

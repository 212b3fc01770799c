/**
 * What a slice's file contains, decided before a byte is copied: metadata, tensors with the places their bytes come
 * from, the exact header and the exact size. Pure.
 *
 * What each slice carries beside its layers and the tensors of the whole model:
 *
 * | slice  | token_embd.weight                | output.weight                   | tokenizer |
 * |--------|----------------------------------|---------------------------------|-----------|
 * | whole  | as in the model                  | as in the model                 | yes       |
 * | first  | as in the model                  | none                            | yes       |
 * | middle | 32 rows of zeros                 | none                            | none      |
 * | last   | the output matrix under its name | none: llama.cpp ties the two    | yes       |
 *
 * llama.cpp insists on the embedding matrix and the final norm in every file. Where an output matrix cannot be tied
 * (gpt-oss insists on it; NVFP4 scales belong to it), a slice that does not use it gets zeros in its place, and the last
 * one keeps it and gets zeros as embedding.
 */
import { createHash } from 'node:crypto';
import { sliceId, type SliceId } from '../protocol/ids.ts';
import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import { layersText, type LayerRange } from '../protocol/plan.ts';
import { architectureRule } from './architecture.ts';
import { ggmlTypeNamed, tensorBytes, type GgmlType } from './ggml-type.ts';
import type { GgufMetadata } from './gguf-value.ts';
import { layOut, type GgufLayout } from './gguf-writer.ts';
import { isWhole, requireLegalSlice } from './layer-cut.ts';
import type { ModelFile, ModelTensor } from './model-file.ts';
import { layerOf } from './model-soundness.ts';
import { middleVocabularySize, sliceKeys, sliceMetadata } from './slice-metadata.ts';

/** Raised whenever the same model and layers would give another file: it is part of a slice's id. */
export const cutterVersion = 1;

export interface SliceTensor {
  readonly name: string;
  readonly type: GgmlType;
  readonly shape: readonly number[];
  readonly bytes: number;
  /** The tensor of the model whose bytes these are, or zeros. */
  readonly source: { readonly kind: 'model'; readonly tensor: ModelTensor } | { readonly kind: 'zeros' };
}

export interface SlicePlan {
  readonly id: SliceId;
  readonly range: LayerRange;
  readonly metadata: GgufMetadata;
  readonly tensors: readonly SliceTensor[];
  readonly layout: GgufLayout;
  /** Size of the file, in bytes. */
  readonly bytes: number;
}

export type SlicePlace = 'whole' | 'first' | 'middle' | 'last';

/** Where a slice lies in its model. */
export function slicePlace(model: ModelFile, range: LayerRange): SlicePlace {
  if (isWhole(model, range)) return 'whole';
  if (range.first === 0) return 'first';
  return range.last === model.layers - 1 ? 'last' : 'middle';
}

/**
 * Plans the slice of `model` with the layers of `range`.
 *
 * @param modelHash what `hashModel` gives: 64 hexadecimal digits
 * @throws MODEL_CUT_ILLEGAL when the slice would not be exact; MODEL_INVALID for a model that is a slice itself or has
 *   tensors nobody knows what to do with
 */
export function planSlice(model: ModelFile, modelHash: string, range: LayerRange): SlicePlan {
  if (model.metadata.has(sliceKeys.id)) {
    throw new P4Error('MODEL_INVALID', { file: fileOf(model), found: 'a slice of a model', expected: 'a whole model' });
  }
  requireLegalSlice(model, range);
  const place = slicePlace(model, range);
  const id = identify(modelHash, range, model.layers);
  const alignment = Math.max(model.alignment, 32);
  const metadata = sliceMetadata({ model, modelHash, range, place, id, alignment });
  const tensors = [...wholeModelTensors(model, place), ...layerTensors(model, range)];
  const layout = layOut(metadata, tensors, alignment);
  return { id, range, metadata, tensors, layout, bytes: layout.bytes };
}

/** The name a slice has on every host: nothing but what is in the file decides it. */
export function identify(modelHash: string, range: LayerRange, layers: number): SliceId {
  const content = `p4 slice, cutter ${cutterVersion}\nmodel ${modelHash}\nlayers ${layersText(range)} of ${layers}\n`;
  return sliceId(createHash('sha256').update(content).digest('hex'));
}

/** File name of a slice. It must not look like a shard's, or llama.cpp would look for the others. */
export const sliceFileName = (id: SliceId): string => `${id}.gguf`;

function layerTensors(model: ModelFile, { first, last }: LayerRange): readonly SliceTensor[] {
  return model.tensors.flatMap((tensor) => {
    const layer = layerOf(tensor.name);
    if (layer === null || layer < first || layer > last) return [];
    return [copied(tensor, tensor.name.replace(`blk.${layer}.`, `blk.${layer - first}.`))];
  });
}

/** Tensors that every slice has, whatever its layers. */
const everywhere: ReadonlySet<string> = new Set([
  'output_norm.weight',
  'output_norm.bias',
  'cls.output.weight',
  'rope_freqs.weight',
  'rope_factors_long.weight',
  'rope_factors_short.weight',
]);
/** Tensors that belong to the output matrix and go with it. */
const withOutput: ReadonlySet<string> = new Set(['output.bias', 'output.scale', 'output.input_scale']);

function wholeModelTensors(model: ModelFile, place: SlicePlace): readonly SliceTensor[] {
  return model.tensors.flatMap((tensor) => {
    if (layerOf(tensor.name) !== null) return [];
    if (place === 'whole' || everywhere.has(tensor.name)) return [copied(tensor, tensor.name)];
    if (tensor.name === 'token_embd.weight') return [embedding(model, tensor, place)];
    if (tensor.name === 'output.weight') return outputOf(model, tensor, place);
    if (withOutput.has(tensor.name)) return place === 'last' ? [copied(tensor, tensor.name)] : [];
    throw new P4Error('MODEL_INVALID', {
      file: fileOf(model),
      found: `tensor ${tensor.name}`,
      expected: 'layers, embedding, output matrix, final norm and rotary factors',
    });
  });
}

function embedding(model: ModelFile, tensor: ModelTensor, place: 'first' | 'middle' | 'last'): SliceTensor {
  if (place === 'first') return copied(tensor, tensor.name);
  if (place === 'middle') return zeros(tensor.name, ggmlTypeNamed('F32'), [model.hiddenWidth, middleVocabularySize]);
  const output = model.tensors.find(({ name }) => name === 'output.weight');
  if (output === undefined) return copied(tensor, tensor.name);
  return keepsOutput(model) ? unusedMatrix(model, tensor.name) : copied(output, tensor.name);
}

function outputOf(model: ModelFile, tensor: ModelTensor, place: 'first' | 'middle' | 'last'): readonly SliceTensor[] {
  if (!keepsOutput(model)) return [];
  if (place === 'last') return [copied(tensor, tensor.name)];
  if (place === 'first')
    return architectureRule(model.architecture).outputMayBeTied ? [] : [unusedMatrix(model, tensor.name)];
  return [zeros(tensor.name, ggmlTypeNamed('F32'), [model.hiddenWidth, middleVocabularySize])];
}

/** Whether the output matrix must stay under its own name. */
const keepsOutput = (model: ModelFile): boolean =>
  !architectureRule(model.architecture).outputMayBeTied ||
  model.tensors.some(({ name }) => name === 'output.scale' || name === 'output.input_scale');

/**
 * A matrix of the vocabulary's size that is required but never read: zeros, in the smallest type that fits the width
 * and that no backend repacks into memory of its own when it loads.
 */
function unusedMatrix(model: ModelFile, name: string): SliceTensor {
  const types = ['Q5_0', 'F16'].map(ggmlTypeNamed);
  const type = types.find(({ blockElements }) => model.hiddenWidth % blockElements === 0);
  return zeros(name, present(type, 'every width fits F16'), [model.hiddenWidth, model.vocabularySize]);
}

const copied = (tensor: ModelTensor, name: string): SliceTensor => ({
  name,
  type: tensor.type,
  shape: tensor.shape,
  bytes: tensor.bytes,
  source: { kind: 'model', tensor },
});

const zeros = (name: string, type: GgmlType, shape: readonly number[]): SliceTensor => ({
  name,
  type,
  shape,
  bytes: tensorBytes(type, shape),
  source: { kind: 'zeros' },
});

const fileOf = (model: ModelFile): string => model.shards[0]?.path ?? '';

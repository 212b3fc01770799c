/** What a slice's file says it is, for whoever is about to load it: read and checked without touching a weight. */
import { P4Error } from '../protocol/errors.ts';
import { sliceId, type SliceId } from '../protocol/ids.ts';
import { layerCount, layersText, type LayerRange } from '../protocol/plan.ts';
import { numberOf, textOf, unsignedOf } from './gguf-value.ts';
import { openModel, type ModelFile } from './model-file.ts';
import { sliceKeys } from './slice-metadata.ts';
import { identify } from './slice-plan.ts';

export interface SliceIdentity {
  readonly sliceId: SliceId;
  /** Layers of the whole model that this slice has, both inclusive, counted from 0. */
  readonly first: number;
  readonly last: number;
  /** Layers of the whole model. */
  readonly modelLayers: number;
  readonly modelHash: string;
  readonly architecture: string;
  /** Elements of one row of the hidden state, in and out. */
  readonly hiddenWidth: number;
  /** Tokens of context the model was trained with. */
  readonly contextTokens: number;
  /** Token ids are 0 to this minus 1. A slice that sees no token ids has a stand-in of 32. */
  readonly vocabularySize: number;
  readonly hasTokenizer: boolean;
  /** What every element of the incoming hidden state is divided by: a float32, 1 for nothing. */
  readonly inputDivisor: number;
  /** Size of the file. */
  readonly bytes: number;
}

/**
 * Reads and checks a slice's file.
 *
 * @throws SLICE_INVALID when it is a sound GGUF but no slice of this cutter's, or its parts contradict each other; else
 *   what `openModel` throws
 */
export async function readSliceIdentity(path: string): Promise<SliceIdentity> {
  const model = await openModel(path);
  const { metadata } = model;
  const range = { first: required(model, sliceKeys.first), last: required(model, sliceKeys.last) };
  const modelLayers = required(model, sliceKeys.modelLayers);
  const modelHash = textOf(metadata.get(sliceKeys.modelHash)) ?? '';
  const id = textOf(metadata.get(sliceKeys.id)) ?? '';
  checkRange(model, range, modelLayers);
  const expected = identify(modelHash, range, modelLayers);
  if (id !== expected) throw invalid(model, `slice id ${id}`, `${expected}, of its model, layers and cutter version`);
  return {
    sliceId: sliceId(id),
    ...range,
    modelLayers,
    modelHash,
    architecture: model.architecture,
    hiddenWidth: model.hiddenWidth,
    contextTokens: model.contextTokens,
    vocabularySize: model.vocabularySize,
    hasTokenizer: model.hasTokenizer,
    inputDivisor: numberOf(metadata.get(sliceKeys.inputDivisor)) ?? 1,
    bytes: model.bytes,
  };
}

function checkRange(model: ModelFile, range: LayerRange, modelLayers: number): void {
  const isOrdered = range.first <= range.last && range.last < modelLayers;
  if (!isOrdered)
    throw invalid(model, `layers ${layersText(range)} of ${modelLayers}`, 'layers of the model, in order');
  const count = layerCount(range);
  if (count !== model.layers)
    throw invalid(model, `${model.layers} layers`, `${count}, the layers ${layersText(range)}`);
}

function required(model: ModelFile, key: string): number {
  const value = unsignedOf(model.metadata.get(key));
  if (value === null) throw invalid(model, `no ${key}`, 'a slice cut by p4');
  return value;
}

const invalid = (model: ModelFile, found: string, expected: string): P4Error =>
  new P4Error('SLICE_INVALID', { file: model.shards[0]?.path ?? '', found, expected });

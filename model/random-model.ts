/**
 * A llama model with random weights, written from a seed: for benchmarks and for tests that must see rounding, which a
 * model of 128 elements a row cannot show.
 *
 * It has no tokenizer (prompt it with token ids). Weights are normal with a deviation of 1/sqrt(inputs), norms are 1:
 * every layer changes the hidden state by about its own size, so logits differ from token to token.
 */
import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { ggmlTypeNamed, tensorBytes } from './ggml-type.ts';
import { f32, text, u32, type GgufMetadata } from './gguf-value.ts';
import { GgufWriter, layOut, type TensorShape } from './gguf-writer.ts';
import { randomBits, weightFiller, type RandomBits, type WeightType } from './random-weights.ts';

export interface RandomModelShape {
  readonly layers: number;
  /** Elements of a row of the hidden state: a multiple of 32 and of `heads`. */
  readonly hiddenWidth: number;
  readonly heads: number;
  /** Divides `heads`. */
  readonly kvHeads: number;
  /** Width of the feed-forward part: a multiple of 32. */
  readonly feedForwardWidth: number;
  /** Token ids are 0 to this minus 1; even. */
  readonly vocabularySize: number;
  readonly contextTokens: number;
  readonly weightType: WeightType;
  /** Unsigned 32-bit: the same seed and shape give the same bytes. */
  readonly seed: number;
}

/** The benchmark's model: 199 million parameters, 213 MB. */
export const benchModelShape: RandomModelShape = {
  layers: 16,
  hiddenWidth: 1024,
  heads: 16,
  kvHeads: 8,
  feedForwardWidth: 2688,
  vocabularySize: 8192,
  contextTokens: 4096,
  weightType: 'Q8_0',
  seed: 1,
};

/**
 * Writes such a model to `path`, in one step at the end; an older file there is replaced.
 *
 * @returns the file's sha256, in hexadecimal
 * @throws INVALID_ARGUMENT for a shape that cannot be
 */
export async function writeRandomModel(path: string, shape: RandomModelShape): Promise<string> {
  checkShape(shape);
  const tensors = tensorsOf(shape);
  const layout = layOut(metadataOf(shape), tensors, 32);
  const temporary = `${path}.${process.pid}.${randomBytes(6).toString('hex')}`;
  try {
    const handle = await open(temporary, 'wx');
    try {
      const writer = new GgufWriter(handle, layout);
      await writer.writeHeader();
      await writeTensors(writer, tensors, shape);
      const hash = writer.finish();
      await handle.sync();
      await rename(temporary, path);
      return hash;
    } finally {
      await handle.close();
    }
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function checkShape(shape: RandomModelShape): void {
  const { hiddenWidth, heads, kvHeads, feedForwardWidth, vocabularySize, layers } = shape;
  const isSound =
    [layers, hiddenWidth, heads, kvHeads, feedForwardWidth, vocabularySize].every(
      (size) => Number.isInteger(size) && size > 0,
    ) &&
    layers <= limits.modelLayers &&
    hiddenWidth % 32 === 0 &&
    feedForwardWidth % 32 === 0 &&
    hiddenWidth % heads === 0 &&
    (hiddenWidth / heads) % 2 === 0 &&
    heads % kvHeads === 0 &&
    vocabularySize % 2 === 0;
  if (!isSound)
    throw new P4Error('INVALID_ARGUMENT', { what: 'shape of a random model', found: JSON.stringify(shape) });
}

function metadataOf(shape: RandomModelShape): GgufMetadata {
  const headWidth = shape.hiddenWidth / shape.heads;
  return new Map([
    ['general.architecture', text('llama')],
    ['general.name', text(`random, seed ${shape.seed}`)],
    ['llama.vocab_size', u32(shape.vocabularySize)],
    ['llama.context_length', u32(shape.contextTokens)],
    ['llama.embedding_length', u32(shape.hiddenWidth)],
    ['llama.block_count', u32(shape.layers)],
    ['llama.feed_forward_length', u32(shape.feedForwardWidth)],
    ['llama.attention.head_count', u32(shape.heads)],
    ['llama.attention.head_count_kv', u32(shape.kvHeads)],
    ['llama.attention.layer_norm_rms_epsilon', f32(1e-5)],
    ['llama.rope.dimension_count', u32(headWidth)],
    ['llama.rope.freq_base', f32(10_000)],
    ['tokenizer.ggml.model', text('no_vocab')],
  ]);
}

/** Matrices have two dimensions, inputs first; norms have one. */
function tensorsOf(shape: RandomModelShape): readonly TensorShape[] {
  const { hiddenWidth: width, feedForwardWidth, vocabularySize } = shape;
  const kvWidth = (width / shape.heads) * shape.kvHeads;
  const matrix = (name: string, inputs: number, outputs: number): TensorShape => ({
    name,
    type: ggmlTypeNamed(shape.weightType),
    shape: [inputs, outputs],
  });
  const norm = (name: string): TensorShape => ({ name, type: ggmlTypeNamed('F32'), shape: [width] });
  const layers = Array.from({ length: shape.layers }, (_, layer) => [
    norm(`blk.${layer}.attn_norm.weight`),
    matrix(`blk.${layer}.attn_q.weight`, width, width),
    matrix(`blk.${layer}.attn_k.weight`, width, kvWidth),
    matrix(`blk.${layer}.attn_v.weight`, width, kvWidth),
    matrix(`blk.${layer}.attn_output.weight`, width, width),
    norm(`blk.${layer}.ffn_norm.weight`),
    matrix(`blk.${layer}.ffn_gate.weight`, width, feedForwardWidth),
    matrix(`blk.${layer}.ffn_up.weight`, width, feedForwardWidth),
    matrix(`blk.${layer}.ffn_down.weight`, feedForwardWidth, width),
  ]).flat();
  return [
    matrix('token_embd.weight', width, vocabularySize),
    ...layers,
    norm('output_norm.weight'),
    matrix('output.weight', width, vocabularySize),
  ];
}

async function writeTensors(
  writer: GgufWriter,
  tensors: readonly TensorShape[],
  { seed, weightType }: RandomModelShape,
): Promise<void> {
  const fillers = new Map<number, Filler>();
  for (const [index, tensor] of tensors.entries()) {
    const fill = tensor.shape.length === 1 ? fillOnes : fillerOf(tensor, weightType, fillers);
    const random = randomBits(seed, index);
    const total = tensorBytes(tensor.type, tensor.shape);
    const piece = chunkBytes(tensor);
    const buffer = Buffer.from(new ArrayBuffer(Math.min(piece, total)));
    for (let done = 0; done < total; done += piece) {
      const chunk = buffer.subarray(0, Math.min(piece, total - done));
      fill(chunk, random);
      await writer.write(chunk);
    }
    await writer.endTensor();
  }
}

type Filler = (bytes: Buffer, random: RandomBits) => void;

/** The embedding is looked up, not summed: its elements are of size 1. Fillers are kept by their deviation. */
function fillerOf({ name, shape }: TensorShape, weightType: WeightType, fillers: Map<number, Filler>): Filler {
  const deviation = name === 'token_embd.weight' ? 1 : 1 / Math.sqrt(shape[0] ?? 1);
  const filler = fillers.get(deviation) ?? weightFiller(weightType, deviation);
  fillers.set(deviation, filler);
  return filler;
}

function fillOnes(bytes: Buffer): void {
  for (let offset = 0; offset < bytes.length; offset += 4) bytes.writeFloatLE(1, offset);
}

/** About a megabyte, in whole pairs of blocks. */
const chunkBytes = ({ type }: TensorShape): number => 2 * type.blockBytes * Math.floor(2 ** 19 / type.blockBytes);

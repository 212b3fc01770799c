/**
 * A model as its files describe it: where every tensor lies, and the few numbers everybody asks for.
 *
 * Opening reads headers only: memory does not grow with the weights. Whatever libllama would answer with an assertion
 * is refused here (`model-soundness.ts`). The value holds no open file; who reads weights opens the shards anew and
 * confirms that they are unchanged.
 */
import { P4Error } from '../protocol/errors.ts';
import { present } from '../protocol/assert.ts';
import type { GgmlType } from './ggml-type.ts';
import { textOf, unsignedOf, type GgufMetadata } from './gguf-value.ts';
import { architectureRule } from './architecture.ts';
import { readShards, type ModelShard, type ReadShard } from './model-shard.ts';
import { checkSoundness } from './model-soundness.ts';

export interface ModelTensor {
  readonly name: string;
  readonly type: GgmlType;
  /** Elements per dimension, the contiguous one first. */
  readonly shape: readonly number[];
  /** Position in the model's `shards`. */
  readonly shard: number;
  /** First byte in that file. */
  readonly offset: number;
  readonly bytes: number;
}

export interface ModelFile {
  /** One file, or all shards in order. */
  readonly shards: readonly ModelShard[];
  /** The first shard's, in the order of the file. */
  readonly metadata: GgufMetadata;
  readonly alignment: number;
  readonly tensors: readonly ModelTensor[];
  /** `general.architecture`. */
  readonly architecture: string;
  /** Number of layers; they are counted from 0. */
  readonly layers: number;
  /** Elements of one row of the hidden state. */
  readonly hiddenWidth: number;
  /** Tokens of context the model was trained with. */
  readonly contextTokens: number;
  /** Token ids are 0 to this minus 1. */
  readonly vocabularySize: number;
  /** Whether text can be turned into token ids with what the file holds. */
  readonly hasTokenizer: boolean;
  /** Size of all files. */
  readonly bytes: number;
}

/**
 * Opens the model that `path`, a GGUF file or any shard of a split one, belongs to.
 *
 * @throws MODEL_FILE_UNREADABLE, GGUF_NOT_GGUF, GGUF_BIG_ENDIAN, GGUF_VERSION, GGUF_TRUNCATED, GGUF_INVALID,
 *   GGUF_SHARD_MISSING, GGUF_SHARD_INVALID, MODEL_ARCHITECTURE_UNPROVEN or MODEL_INVALID
 */
export async function openModel(path: string): Promise<ModelFile> {
  const read = await readShards(path);
  const first = present(read[0], 'a model has a file');
  const { metadata } = first.header;
  const model = describe(read, first);
  checkSoundness(model);
  return { ...model, metadata: withoutSplit(metadata) };
}

/** Values of `tokenizer.ggml.model` that stand for no tokens at all. */
const withoutTokens: ReadonlySet<string> = new Set(['no_vocab', 'none']);
/** One that has names for tokens, but no way from text to them. */
const silentTokenizer = 'test';

function describe(read: readonly ReadShard[], { shard, header }: ReadShard): ModelFile {
  const { metadata } = header;
  const file = shard.path;
  const architecture = textOf(metadata.get('general.architecture'));
  if (architecture === null || architecture === '') throw missing(file, 'general.architecture');
  architectureRule(architecture);
  const required = (key: string): number => {
    const name = `${architecture}.${key}`;
    const value = metadata.get(name);
    const number = value?.kind === 'single' && value.type === 'u32' ? unsignedOf(value) : null;
    if (number === null || number === 0) throw missing(file, name);
    return number;
  };
  const tokenizer = textOf(metadata.get('tokenizer.ggml.model'));
  if (tokenizer === null) throw missing(file, 'tokenizer.ggml.model');
  const hasTokens = !withoutTokens.has(tokenizer);
  const tokens = hasTokens ? metadata.get('tokenizer.ggml.tokens') : undefined;
  return {
    shards: read.map((one) => one.shard),
    metadata,
    alignment: header.alignment,
    tensors: read.flatMap((one, index) => one.header.tensors.map((tensor) => ({ ...tensor, shard: index }))),
    architecture,
    layers: required('block_count'),
    hiddenWidth: required('embedding_length'),
    contextTokens: required('context_length'),
    // As llama.cpp counts it: the token list, or the stated size where there is none.
    vocabularySize: tokens?.kind === 'array' ? tokens.length : required('vocab_size'),
    hasTokenizer: hasTokens && tokenizer !== silentTokenizer,
    bytes: read.reduce((sum, one) => sum + one.shard.bytes, 0),
  };
}

/** One file stands for the model from here on, so nothing may say that it is one of several. */
const withoutSplit = (metadata: GgufMetadata): GgufMetadata =>
  new Map([...metadata].filter(([key]) => !key.startsWith('split.')));

const missing = (file: string, key: string): P4Error =>
  new P4Error('MODEL_INVALID', { file, found: `no sound value under ${key}`, expected: 'a value llama.cpp accepts' });

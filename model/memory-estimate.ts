/**
 * How much memory a stage will hold, from the header of its slice and the plan alone.
 *
 * `estimateStageMemory` counts what `smaps_rollup` calls Rss: anonymous memory and touched pages of files, once every session
 * has filled its part of the KV cache. Weights count once: they are read into anonymous memory.
 *
 * `stageDataBytes` counts what a limit of memory does (RLIMIT_DATA): private writable mappings, touched or not. Pages of
 * programs and libraries are not among them; stacks of threads are, and tables that llama.cpp makes for the largest graph.
 */
import { ggmlTypeNamed } from './ggml-type.ts';
import { unsignedOf, numbersOf } from './gguf-value.ts';
import { architectureKey } from './architecture.ts';
import type { ModelFile } from './model-file.ts';
import type { SlicePlan } from './slice-plan.ts';
import { slidingWindowLayers } from './sliding-window.ts';
import { limits } from '../protocol/limits.ts';
import { layerCount, type Plan } from '../protocol/plan.ts';

/** What the memory of a slice follows from. */
export interface SliceMemory {
  /** Of all tensors. */
  readonly weightBytes: number;
  readonly tensors: number;
  /** Metadata and tensor table. */
  readonly headerBytes: number;
  /** Token ids with a text of their own; 0 without a tokenizer. */
  readonly tokens: number;
  readonly layers: number;
  /** Elements of keys and of values that one KV cell holds, in all layers together. */
  readonly keyElements: number;
  readonly valueElements: number;
  readonly hiddenWidth: number;
  /** Elements of the widest row inside a layer: of the feed-forward part (of all experts that a row uses), or of all heads. */
  readonly innerWidth: number;
  /** Rows of the embedding matrix: of logits, where there are any. */
  readonly vocabularySize: number;
  /** Whether KV cells are kept in order in any case (`stage/cell-order.ts`). */
  readonly keepsOrder: boolean;
  readonly isHead: boolean;
  readonly isTail: boolean;
}

/** @param slice of this model, by `planSlice` */
export function sliceMemory(model: ModelFile, slice: SlicePlan): SliceMemory {
  const { metadata, range, tensors, layout } = slice;
  const layers = layerCount(range);
  const key = (name: string): string => architectureKey(model, name);
  const perLayer = (name: string): readonly number[] => {
    const numbers = numbersOf(metadata.get(key(name)), limits.modelLayers);
    return Array.from({ length: layers }, (_none, layer) => numbers[numbers.length === 1 ? 0 : layer] ?? 0);
  };
  const heads = perLayer('attention.head_count');
  const kvHeads = metadata.has(key('attention.head_count_kv')) ? perLayer('attention.head_count_kv') : heads;
  const keyLength =
    unsignedOf(metadata.get(key('attention.key_length'))) ?? Math.floor(model.hiddenWidth / (heads[0] ?? 1));
  const valueLength = unsignedOf(metadata.get(key('attention.value_length'))) ?? keyLength;
  const kvHeadCount = kvHeads.reduce((sum, count) => sum + count, 0);
  const experts = Math.max(1, ...numbersOf(metadata.get(key('expert_used_count')), limits.modelLayers));
  const rows = tensors
    .filter(({ name, shape }) => name.startsWith('blk.') && shape.length > 1)
    .map(({ shape }) => (shape[1] ?? 0) * (shape.length > 2 ? experts : 1));
  const embedding = tensors.find(({ name }) => name === 'token_embd.weight');
  const hasTokens = !slice.tensors.some(({ source, name }) => name === 'token_embd.weight' && source.kind === 'zeros');
  return {
    weightBytes: tensors.reduce((sum, { bytes }) => sum + bytes, 0),
    tensors: tensors.length,
    headerBytes: layout.header.length,
    tokens: hasTokens && model.hasTokenizer ? model.vocabularySize : 0,
    layers,
    keyElements: kvHeadCount * keyLength,
    valueElements: kvHeadCount * valueLength,
    hiddenWidth: model.hiddenWidth,
    innerWidth: Math.max(model.hiddenWidth, ...rows),
    vocabularySize: embedding?.shape[1] ?? model.vocabularySize,
    keepsOrder: slidingWindowLayers(model) !== null,
    isHead: range.first === 0,
    isTail: range.last === model.layers - 1,
  };
}

export interface StageOrder {
  readonly plan: Pick<Plan, 'contextTokens' | 'sessions' | 'keptPrefixes' | 'kv'>;
}

/** In bytes. */
export interface StageMemory {
  readonly weightBytes: number;
  readonly kvBytes: number;
  readonly computeBytes: number;
  readonly processBytes: number;
  /** All together. */
  readonly bytes: number;
}

/** llama.cpp makes KV cells in this multiple. */
const cellMultiple = 256;

/** How llama.cpp counts: the sessions' tokens and the reserved sequence's one, padded. */
export const kvCells = ({ contextTokens, sessions }: StageOrder['plan']): number =>
  Math.ceil((contextTokens * sessions + 1) / cellMultiple) * cellMultiple;

export function estimateStageMemory(slice: SliceMemory, { plan }: StageOrder): StageMemory {
  const cells = kvCells(plan);
  const { weightBytes } = slice;
  const kvBytes =
    cells * (cacheBytes(plan.kv.keys, slice.keyElements) + cacheBytes(plan.kv.values, slice.valueElements));
  const computeBytes = bufferBytes(slice, plan.sessions + plan.keptPrefixes) + cells * bookBytesPerCell(slice);
  const processBytes = processBytesOf(slice);
  return {
    weightBytes,
    kvBytes,
    computeBytes,
    processBytes,
    bytes: weightBytes + kvBytes + computeBytes + processBytes,
  };
}

/** Rows of the cache are whole blocks: the sum over layers may be taken at once. */
function cacheBytes(name: string, elements: number): number {
  const type = ggmlTypeNamed(name.toUpperCase());
  return (elements / type.blockElements) * type.blockBytes;
}

const rows = limits.cpuDecodeRows;
const floatBytes = 4;

/**
 * Buffers that a decode of the most rows touches: about six hidden states and two of the widest rows live at once, and
 * logits twice, in the graph and for the reader. A slice before the tail has a place for the logits of every row, though
 * none are computed; it is cleared all the same (`llama_context::output_reserve`).
 */
function bufferBytes(slice: SliceMemory, sequences: number): number {
  const states = rows * floatBytes * (6 * slice.hiddenWidth + 2 * slice.innerWidth);
  const logits = floatBytes * slice.vocabularySize;
  const outputs = sequences + 1;
  return states + logits * (slice.isTail ? outputs + Math.min(rows, outputs) : Math.max(rows, outputs));
}

/**
 * Beside keys and values a cell has 48 bytes in llama.cpp's tables, 48 in its ordered set once it is in use, 2 in
 * `stage/cell-order.ts`, and a float16 in the attention mask for every row. Sliding windows have a cache, and a mask, of
 * their own.
 */
const bookBytesPerCell = ({ keepsOrder }: SliceMemory): number => (48 + 48 + 2 + 2 * rows) * (keepsOrder ? 2 : 1);

/** Node, libllama and their heaps, as measured of a stage of a tiny model: x86-64, Node 20, llama.cpp v0.5.0. */
const bareProcessBytes = 82e6;
/** What reading the vocabulary, and drawing from it, leaves in the heaps, beside what a token takes. */
const vocabularyBytes = 2e6;
/** In llama.cpp's tables, in the header that was read, and in the candidates of a draw. */
const bytesPerToken = 400;
/** Frames with hidden states that wait for the collector, each way, and how much of them it lets grow old. */
const frameCount = 24;
const frameBytesMost = 12e6;

const processBytesOf = (slice: SliceMemory): number => bareProcessBytes + heapBytes(slice);

function heapBytes({ hiddenWidth, tokens, isHead, isTail, headerBytes }: SliceMemory): number {
  const frames = Math.min(frameBytesMost, frameCount * rows * hiddenWidth * floatBytes);
  const ways = (isHead ? 0 : 1) + (isTail ? 0 : 1);
  const words = isHead || isTail ? vocabularyBytes + tokens * bytesPerToken : 0;
  return ways * frames + words + headerBytes;
}

/** Heaps of Node and libllama, with room for what V8 lets grow old: 55 to 68 MB as measured, of the versions above. */
const bareDataBytes = 80e6;
/** Stack of a thread where the system says nothing else (RLIMIT_STACK); hardly a page of each is touched. */
const stackBytes = 8 * 2 ** 20;
/** Node's own, beside the main one: V8's, libuv's and a timer's. */
const nodeThreads = 9;
/** The thread that computes has a stack of its own size: `stackSizeMb` of a worker. */
const workerStackBytes = 4 * 2 ** 20;
/** Nodes that llama.cpp makes room for in a graph (`llama_context::graph_max_nodes`). */
const graphNodes = (tensors: number): number => Math.max(1024, 8 * tensors);
/** `ggml_backend_sched_new`: two tensors of 336 bytes for each of the 30 inputs that each node might need copied. */
const schedulerBytesPerNode = 30 * 2 * 336;

/** What a limit of the stage's memory has to be at least, in bytes, with some megabytes to spare. */
export function stageDataBytes(slice: SliceMemory, order: StageOrder & { readonly threads: number }): number {
  const { weightBytes, kvBytes, computeBytes } = estimateStageMemory(slice, order);
  // One of the threads that compute is the worker.
  const stacks = (nodeThreads + order.threads - 1) * stackBytes + workerStackBytes;
  const scheduler = graphNodes(slice.tensors) * schedulerBytesPerNode;
  return weightBytes + kvBytes + computeBytes + bareDataBytes + heapBytes(slice) + stacks + scheduler;
}

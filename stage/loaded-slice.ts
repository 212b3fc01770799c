/** A slice in memory: model, context, thread pool and the tap for its hidden state, made together and freed together. */
import { assert } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import { layerCount, type DecodeMode, type Device, type KvType, type LayerRange } from '../protocol/plan.ts';
import { HiddenStateTap } from './hidden-state-tap.ts';
import { loadLlamaLibrary, type LlamaLibrary } from './llama-library.ts';
import {
  deviceTypes,
  flashAttentionEnabled,
  loadModeNone,
  splitModeNone,
  type ContextParams,
  type ModelParams,
  type Pointer,
} from './llama-structs.ts';
import { NativeMemory } from './native-memory.ts';
import { exactRows } from './shape.ts';
import { openThreadPool } from './thread-pool.ts';

export interface SliceOptions {
  /** Path of the slice's GGUF file, checked by model/ before: libllama aborts on some bad files. */
  readonly path: string;
  /** The layers of the model that the file holds, and how many the model has. */
  readonly layers: LayerRange;
  readonly modelLayers: number;
  /** KV cells for all sequences together (rounded up to llama.cpp's multiple of 256). */
  readonly contextTokens: number;
  /** KV leases and kept prefixes; sequence ids are 0 to `sequences` - 1, and one more is kept for padding and probes. */
  readonly sequences: number;
  /** Rows of the largest decode. */
  readonly batchRows: number;
  readonly decode: DecodeMode;
  readonly kv: { readonly keys: KvType; readonly values: KvType };
  readonly device: Device;
  /** Threads that compute. */
  readonly threads: number;
  /** How long threads spin for work before they sleep, 0 to 100; `null` for not at all. */
  readonly poll: number | null;
  /** Float32 constant by which incoming hidden state is divided (models that scale their input in the graph); 1 for none. */
  readonly inputDivisor: number;
  /** Folder of llama.cpp's libraries; `null` to find them. */
  readonly libraryFolder: string | null;
}

export interface LoadedSlice {
  readonly library: LlamaLibrary;
  readonly model: Pointer;
  readonly context: Pointer;
  readonly memory: Pointer;
  /** Floats of one row of hidden state. */
  readonly width: number;
  /** KV cells that llama.cpp made. */
  readonly cells: number;
  /** Rows of the largest decode, padding counted. */
  readonly batchRows: number;
  /** `null` on the slice that ends in logits. */
  readonly tap: HiddenStateTap | null;
  free(): void;
}

/** `enum ggml_type`. */
const ggmlTypes: Readonly<Record<KvType, number>> = {
  f32: 0,
  f16: 1,
  q4_0: 2,
  q4_1: 3,
  q5_0: 6,
  q5_1: 7,
  q8_0: 8,
  bf16: 30,
};

export const isFinal = (options: SliceOptions): boolean => options.layers.last === options.modelLayers - 1;

/** @throws ENGINE_LIBRARY_MISSING, ENGINE_LIBRARY_MISMATCH, ENGINE_DEVICE_ABSENT, ENGINE_MODEL_REFUSED, ENGINE_CONTEXT_REFUSED */
export function loadSlice(options: SliceOptions): LoadedSlice {
  const library = loadLlamaLibrary({ device: options.device.kind, folder: options.libraryFolder });
  const frees: (() => void)[] = [];
  const free = (): void => {
    for (let next = frees.pop(); next !== undefined; next = frees.pop()) next();
  };
  try {
    return makeSlice({ library, options, frees, free });
  } catch (error) {
    free();
    throw error;
  }
}

interface Making {
  readonly library: LlamaLibrary;
  readonly options: SliceOptions;
  /** What frees what has been made so far, run from the last to the first. */
  readonly frees: (() => void)[];
  readonly free: () => void;
}

function makeSlice({ library, options, frees, free }: Making): LoadedSlice {
  const { call } = library;
  const layers = layerCount(options.layers);
  // llama.cpp makes room for the logits of one row of each sequence, and asserts that a batch can have as many.
  const batchRows = Math.max(options.batchRows, exactRows.least, options.sequences + 1);

  const model = loadModel(library, options);
  frees.push(() => {
    call.modelFree(model);
  });
  const width = call.modelWidth(model);

  const pool = openThreadPool(library, options.threads, options.poll ?? 0);
  frees.push(pool.free);

  const tap = isFinal(options) ? null : new HiddenStateTap(library, layers, { rows: batchRows, width });
  if (tap !== null) {
    frees.push(() => {
      tap.close();
    });
  }

  const params = contextParams(call.contextDefaultParams(), options, { batchRows, tap });
  const context = library.log.record(() => call.contextNew(model, params));
  if (context === null) {
    throw new P4Error('ENGINE_CONTEXT_REFUSED', { cells: params.contextCells, said: library.log.lines });
  }
  frees.push(() => {
    call.contextFree(context);
  });
  call.attachThreadPool(context, pool.pool, pool.pool);
  const memory = call.contextMemory(context);
  const cells = call.contextCells(context);
  return { library, model, context, memory, width, cells, batchRows, tap, free };
}

function loadModel(library: LlamaLibrary, options: SliceOptions): Pointer {
  const { call } = library;
  const layers = layerCount(options.layers);
  const devices = new NativeMemory(2 * 8);
  try {
    const list = new BigUint64Array(devices.buffer, 0, 2);
    // An empty list, not NULL: NULL would take every GPU there is.
    if (options.device.kind === 'gpu') list[0] = gpuAt(library, options.device.index);
    const params: ModelParams = {
      ...call.modelDefaultParams(),
      devices: devices.address,
      splitMode: splitModeNone,
      loadMode: loadModeNone,
      gpuLayers: gpuLayers(options.device, layers),
    };
    const model = library.log.record(() => call.modelLoad(options.path, params));
    if (model === null) {
      throw new P4Error('ENGINE_MODEL_REFUSED', { path: options.path, said: library.log.lines });
    }
    const found = call.modelLayers(model);
    if (found !== layers) {
      call.modelFree(model);
      throw new P4Error('ENGINE_MODEL_REFUSED', { path: options.path, layers: found, expected: layers });
    }
    return model;
  } finally {
    devices.free();
  }
}

/** llama.cpp counts the output matrix as one more layer, after the last. */
function gpuLayers(device: Device, layers: number): number {
  if (device.kind === 'cpu') return 0;
  return device.layers >= layers ? layers + 1 : device.layers;
}

function gpuAt(library: LlamaLibrary, index: number): Pointer {
  const { call } = library;
  const devices = Array.from({ length: call.deviceCount() }, (_, position) => call.deviceAt(position));
  const isGpu = (type: number): boolean => type === deviceTypes.gpu || type === deviceTypes.integratedGpu;
  const gpus = devices.filter((device) => isGpu(call.deviceType(device)));
  const chosen = gpus[index];
  if (chosen === undefined) {
    const found = devices.map((device) => `${call.deviceName(device)} (${call.deviceDescription(device)})`);
    throw new P4Error('ENGINE_DEVICE_ABSENT', { index, gpus: gpus.length, found, folder: library.folder });
  }
  return chosen;
}

interface ContextParts {
  readonly batchRows: number;
  readonly tap: HiddenStateTap | null;
}

function contextParams(defaults: ContextParams, options: SliceOptions, parts: ContextParts): ContextParams {
  assert(options.threads >= 1, 'at least one thread computes');
  return {
    ...defaults,
    contextCells: options.contextTokens + 1,
    batchRows: parts.batchRows,
    // The callback runs once per ubatch, so a decode must be one.
    ubatchRows: parts.batchRows,
    sequences: options.sequences + 1,
    threads: options.threads,
    threadsBatch: options.threads,
    flashAttention: flashAttentionEnabled,
    typeK: ggmlTypes[options.kv.keys],
    typeV: ggmlTypes[options.kv.values],
    evalCallback: parts.tap === null ? null : parts.tap.callback,
    offloadKqv: true,
    opOffload: true,
    noPerf: true,
    // Full-size caches for sliding windows: rows of any position can be dropped or kept (truncate, copy).
    swaFull: true,
    // Rows stay in batch order only with a unified cache.
    kvUnified: true,
  };
}

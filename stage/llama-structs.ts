/**
 * The C structs of llama.cpp v0.5.0 that this program passes or reads, typed by hand, and what their defaults must be.
 *
 * Sources: `include/llama.h`, `ggml/include/ggml.h` of that release. A struct that has moved would corrupt memory without
 * a word, so `llama-library.ts` compares every default listed here before anything else is called.
 */
import koffi from 'koffi';

/** An address in native memory; `null` is C's NULL. */
export type Pointer = bigint;
export type NullablePointer = bigint | null;

const pointer = 'void *';

export const modelParamsStruct = koffi.struct({
  devices: pointer,
  tensorBufferOverrides: pointer,
  gpuLayers: 'int32_t',
  splitMode: 'int',
  loadMode: 'int',
  lazyMode: 'int',
  mainGpu: 'int32_t',
  tensorSplit: pointer,
  progressCallback: pointer,
  progressCallbackUserData: pointer,
  kvOverrides: pointer,
  vocabOnly: 'bool',
  checkTensors: 'bool',
  useExtraBuffers: 'bool',
  noHost: 'bool',
  noAlloc: 'bool',
  loadMtp: 'bool',
});

/** `struct llama_model_params`. */
export interface ModelParams {
  devices: NullablePointer;
  tensorBufferOverrides: NullablePointer;
  gpuLayers: number;
  splitMode: number;
  loadMode: number;
  lazyMode: number;
  mainGpu: number;
  tensorSplit: NullablePointer;
  progressCallback: NullablePointer;
  progressCallbackUserData: NullablePointer;
  kvOverrides: NullablePointer;
  vocabOnly: boolean;
  checkTensors: boolean;
  useExtraBuffers: boolean;
  noHost: boolean;
  noAlloc: boolean;
  loadMtp: boolean;
}

export const modelParamsDefaults: ModelParams = {
  devices: null,
  tensorBufferOverrides: null,
  gpuLayers: -1,
  splitMode: 1,
  loadMode: -1,
  lazyMode: 1,
  mainGpu: 0,
  tensorSplit: null,
  progressCallback: null,
  progressCallbackUserData: null,
  kvOverrides: null,
  vocabOnly: false,
  checkTensors: false,
  useExtraBuffers: true,
  noHost: false,
  noAlloc: false,
  loadMtp: false,
};

export const contextParamsStruct = koffi.struct({
  contextCells: 'uint32_t',
  batchRows: 'uint32_t',
  ubatchRows: 'uint32_t',
  sequences: 'uint32_t',
  recurrentSnapshots: 'uint32_t',
  outputRows: 'uint32_t',
  outputRowsPerSequence: 'uint32_t',
  threads: 'int32_t',
  threadsBatch: 'int32_t',
  contextType: 'int',
  ropeScalingType: 'int',
  poolingType: 'int',
  attentionType: 'int',
  flashAttention: 'int',
  ropeFrequencyBase: 'float',
  ropeFrequencyScale: 'float',
  yarnExtFactor: 'float',
  yarnAttentionFactor: 'float',
  yarnBetaFast: 'float',
  yarnBetaSlow: 'float',
  yarnOriginalContext: 'uint32_t',
  defragThreshold: 'float',
  evalCallback: pointer,
  evalCallbackUserData: pointer,
  typeK: 'int',
  typeV: 'int',
  abortCallback: pointer,
  abortCallbackData: pointer,
  embeddings: 'bool',
  offloadKqv: 'bool',
  noPerf: 'bool',
  opOffload: 'bool',
  swaFull: 'bool',
  kvUnified: 'bool',
  samplers: pointer,
  samplerCount: 'size_t',
  otherContext: pointer,
});

/** `struct llama_context_params`. */
export interface ContextParams {
  contextCells: number;
  batchRows: number;
  ubatchRows: number;
  sequences: number;
  recurrentSnapshots: number;
  outputRows: number;
  outputRowsPerSequence: number;
  threads: number;
  threadsBatch: number;
  contextType: number;
  ropeScalingType: number;
  poolingType: number;
  attentionType: number;
  flashAttention: number;
  ropeFrequencyBase: number;
  ropeFrequencyScale: number;
  yarnExtFactor: number;
  yarnAttentionFactor: number;
  yarnBetaFast: number;
  yarnBetaSlow: number;
  yarnOriginalContext: number;
  defragThreshold: number;
  evalCallback: NullablePointer;
  evalCallbackUserData: NullablePointer;
  typeK: number;
  typeV: number;
  abortCallback: NullablePointer;
  abortCallbackData: NullablePointer;
  embeddings: boolean;
  offloadKqv: boolean;
  noPerf: boolean;
  opOffload: boolean;
  swaFull: boolean;
  kvUnified: boolean;
  samplers: NullablePointer;
  samplerCount: number;
  otherContext: NullablePointer;
}

export const contextParamsDefaults: ContextParams = {
  contextCells: 512,
  batchRows: 2048,
  ubatchRows: 512,
  sequences: 1,
  recurrentSnapshots: 0,
  outputRows: 0,
  outputRowsPerSequence: 1,
  threads: 4,
  threadsBatch: 4,
  contextType: 0,
  ropeScalingType: -1,
  poolingType: -1,
  attentionType: -1,
  flashAttention: -1,
  ropeFrequencyBase: 0,
  ropeFrequencyScale: 0,
  yarnExtFactor: -1,
  yarnAttentionFactor: -1,
  yarnBetaFast: -1,
  yarnBetaSlow: -1,
  yarnOriginalContext: 0,
  defragThreshold: -1,
  evalCallback: null,
  evalCallbackUserData: null,
  typeK: 1,
  typeV: 1,
  abortCallback: null,
  abortCallbackData: null,
  embeddings: false,
  offloadKqv: true,
  noPerf: true,
  opOffload: true,
  swaFull: true,
  kvUnified: false,
  samplers: null,
  samplerCount: 0,
  otherContext: null,
};

export const batchStruct = koffi.struct({
  rows: 'int32_t',
  tokens: pointer,
  embeddings: pointer,
  positions: pointer,
  sequenceCounts: pointer,
  sequenceIds: pointer,
  outputs: pointer,
});

/** `struct llama_batch`: exactly one of `tokens` and `embeddings` is set. */
export interface Batch {
  rows: number;
  readonly tokens: NullablePointer;
  readonly embeddings: NullablePointer;
  readonly positions: Pointer;
  readonly sequenceCounts: Pointer;
  readonly sequenceIds: Pointer;
  readonly outputs: Pointer;
}

export const samplerChainParamsStruct = koffi.struct({ noPerf: 'bool' });

/** `struct llama_sampler_chain_params`. */
export interface SamplerChainParams {
  noPerf: boolean;
}

export const samplerChainParamsDefaults: SamplerChainParams = { noPerf: true };

export const threadPoolParamsStruct = koffi.struct({
  cpuMask: koffi.array('bool', 512, 'Array'),
  threads: 'int',
  priority: 'int',
  poll: 'uint32_t',
  strictCpu: 'bool',
  paused: 'bool',
});

/** `struct ggml_threadpool_params`; a mask without a CPU means: the threads inherit the process's affinity. */
export interface ThreadPoolParams {
  cpuMask: boolean[];
  threads: number;
  priority: number;
  poll: number;
  strictCpu: boolean;
  paused: boolean;
}

export const threadPoolParamsDefaults: Omit<ThreadPoolParams, 'cpuMask' | 'threads'> = {
  priority: 0,
  poll: 50,
  strictCpu: false,
  paused: false,
};

/** `struct llama_token_data_array`; `data` points at `tokenDataBytes` for each candidate. */
export const tokenDataArrayStruct = koffi.struct({
  data: pointer,
  size: 'size_t',
  selected: 'int64_t',
  sorted: 'bool',
});

/** Bytes of `struct llama_token_data`: id int32, logit float32, probability float32. */
export const tokenDataBytes = 12;

/** Where `struct ggml_tensor` keeps its name (`char[64]`), and what `ggml_tensor_overhead()` then answers. */
export const tensorNameOffset = 256;
export const tensorNameBytes = 64;
export const tensorOverheadBytes = 368;

/** `enum ggml_backend_dev_type`. */
export const deviceTypes = { cpu: 0, gpu: 1, integratedGpu: 2 } as const;
/** `enum llama_split_mode`: the whole slice on one GPU. */
export const splitModeNone = 0;
/**
 * `enum llama_load_mode`: weights are read into memory of the process. Mapped from the file they are pages that the kernel
 * may take away and that come in 4 KiB pieces: decodes then stall and are slower (ARCHITECTURE.md).
 */
export const loadModeNone = 0;
/** `enum llama_flash_attn_type`. */
export const flashAttentionEnabled = 1;
/** `enum llama_vocab_type`: no tokenizer. */
export const vocabularyTypeNone = 0;

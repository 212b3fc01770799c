/**
 * The one foreign-function edge: every native function this program calls, typed by hand.
 *
 * Calls are synchronous on the calling thread, as are callbacks; one thread of a process loads the libraries (llama.cpp's
 * logger is one per process). A C++ exception that leaves a native function ends the process: whatever can throw on outside
 * input is guarded before the call, by the file that calls it.
 */
import koffi, { type LibraryHandle } from 'koffi';

import { P4Error } from '../protocol/errors.ts';
import { findLibraryFiles, type LibraryFiles } from './library-folder.ts';
import { LogTape } from './log-tape.ts';
import {
  batchStruct,
  contextParamsDefaults,
  contextParamsStruct,
  modelParamsDefaults,
  modelParamsStruct,
  samplerChainParamsDefaults,
  samplerChainParamsStruct,
  tensorOverheadBytes,
  threadPoolParamsDefaults,
  threadPoolParamsStruct,
  tokenDataArrayStruct,
  type Batch,
  type ContextParams,
  type ModelParams,
  type NullablePointer,
  type Pointer,
  type SamplerChainParams,
  type ThreadPoolParams,
} from './llama-structs.ts';

/** What `llama_version()` and `ggml_version()` of the release answer. */
const expectedVersions = { llama: '0.5.0-dev', ggml: '0.25.1' } as const;

/** Stack of a native call: tokenizers recurse over long runs of text. The most that koffi allows. */
const nativeStackBytes = 16 * 1024 * 1024;
// Here and not where it is needed: koffi takes it only before the thread's first library.
koffi.config({ sync_stack_size: nativeStackBytes });

export interface LlamaLibrary {
  readonly folder: string;
  readonly versions: { readonly llama: string; readonly ggml: string };
  readonly log: LogTape;
  readonly call: LlamaFunctions;
}

export type LlamaFunctions = ReturnType<typeof bindFunctions>;

let loaded: LlamaLibrary | null = null;

/**
 * Loads the libraries, once per thread, and checks that they are the release this program was written for.
 *
 * @throws ENGINE_LIBRARY_MISSING, ENGINE_LIBRARY_MISMATCH
 */
export function loadLlamaLibrary(options: { device: 'cpu' | 'gpu'; folder: string | null }): LlamaLibrary {
  if (loaded !== null) return loaded;
  const files = findLibraryFiles(options.device, options.folder);
  const call = bind(files);
  const versions = { llama: call.llamaVersion(), ggml: call.ggmlVersion() };
  refuseMismatch(files, mismatches(call, versions));
  const log = new LogTape(call);
  log.record(() => {
    call.backendLoadAllFromPath(files.folder);
    call.backendInit();
  });
  loaded = { folder: files.folder, versions, log, call };
  return loaded;
}

function bind(files: LibraryFiles): LlamaFunctions {
  try {
    return bindFunctions(files);
  } catch (cause) {
    throw new P4Error('ENGINE_LIBRARY_MISMATCH', { folder: files.folder, found: String(cause) }, cause);
  }
}

function refuseMismatch(files: LibraryFiles, differences: readonly string[]): void {
  if (differences.length > 0) throw new P4Error('ENGINE_LIBRARY_MISMATCH', { folder: files.folder, differences });
}

function mismatches(call: LlamaFunctions, versions: LlamaLibrary['versions']): string[] {
  const versionDifferences = differences('version', versions, expectedVersions);
  // The structs of another release are not even asked for their defaults: returning one could write past our copy.
  if (versionDifferences.length > 0) return versionDifferences;
  const pool: ThreadPoolParams = { cpuMask: [], threads: 0, priority: 0, poll: 0, strictCpu: true, paused: true };
  call.threadPoolParamsInit(pool, 3);
  return [
    ...differences('llama_model_params', call.modelDefaultParams(), modelParamsDefaults),
    ...differences('llama_context_params', call.contextDefaultParams(), contextParamsDefaults),
    ...differences('llama_sampler_chain_params', call.samplerChainDefaultParams(), samplerChainParamsDefaults),
    ...differences('ggml_threadpool_params', pool, { ...threadPoolParamsDefaults, threads: 3 }),
    ...differences('ggml_tensor', { overhead: call.tensorOverhead() }, { overhead: tensorOverheadBytes }),
  ];
}

function differences<Struct extends object>(name: string, found: Struct, expected: Partial<Struct>): string[] {
  const values = new Map(Object.entries(found));
  return Object.entries(expected).flatMap(([field, value]) => {
    const actual: unknown = values.get(field);
    return actual === value ? [] : [`${name}.${field} is ${String(actual)}, expected ${String(value)}`];
  });
}

const pointer = 'void *';

interface Libraries {
  readonly base: LibraryHandle;
  readonly ggml: LibraryHandle;
  readonly llama: LibraryHandle;
}

function bindFunctions(files: LibraryFiles) {
  const libraries: Libraries = {
    base: koffi.load(files.base),
    ggml: koffi.load(files.ggml),
    llama: koffi.load(files.llama),
  };
  return {
    ...bindBackend(libraries),
    ...bindModel(libraries.llama),
    ...bindContext(libraries.llama),
    ...bindVocabulary(libraries.llama),
    ...bindSamplers(libraries.llama),
  };
}

function bindBackend({ base, ggml, llama }: Libraries) {
  const llamaVersion: () => string = llama.func('llama_version', 'str', []);
  const ggmlVersion: () => string = base.func('ggml_version', 'str', []);
  const logSet: (callback: NullablePointer, userData: null) => void = llama.func('llama_log_set', 'void', [
    pointer,
    pointer,
  ]);
  const backendInit: () => void = llama.func('llama_backend_init', 'void', []);
  const backendLoadAllFromPath: (folder: string) => void = ggml.func('ggml_backend_load_all_from_path', 'void', [
    'str',
  ]);
  const registryByName: (name: string) => NullablePointer = ggml.func('ggml_backend_reg_by_name', pointer, ['str']);
  const procAddress: (registry: Pointer, name: string) => NullablePointer = base.func(
    'ggml_backend_reg_get_proc_address',
    pointer,
    [pointer, 'str'],
  );
  const deviceCount: () => number = ggml.func('ggml_backend_dev_count', 'size_t', []);
  const deviceAt: (index: number) => Pointer = ggml.func('ggml_backend_dev_get', pointer, ['size_t']);
  const deviceType: (device: Pointer) => number = base.func('ggml_backend_dev_type', 'int', [pointer]);
  const deviceName: (device: Pointer) => string = base.func('ggml_backend_dev_name', 'str', [pointer]);
  const deviceDescription: (device: Pointer) => string = base.func('ggml_backend_dev_description', 'str', [pointer]);
  const threadPoolParamsInit: (params: ThreadPoolParams, threads: number) => void = base.func(
    'ggml_threadpool_params_init',
    'void',
    [koffi.inout(koffi.pointer(threadPoolParamsStruct)), 'int'],
  );
  const tensorOverhead: () => number = base.func('ggml_tensor_overhead', 'size_t', []);
  const tensorName: (tensor: Pointer) => Pointer = base.func('ggml_get_name', pointer, [pointer]);
  const tensorElements: (tensor: Pointer) => number = base.func('ggml_nelements', 'int64_t', [pointer]);
  const tensorBytes: (tensor: Pointer) => number = base.func('ggml_nbytes', 'size_t', [pointer]);
  const tensorIsContiguous: (tensor: Pointer) => boolean = base.func('ggml_is_contiguous', 'bool', [pointer]);
  const tensorGet: (...args: [tensor: Pointer, into: Float32Array, offset: number, bytes: number]) => void = base.func(
    'ggml_backend_tensor_get',
    'void',
    [pointer, pointer, 'size_t', 'size_t'],
  );
  /** Rounds to the nearest, ties to even; beyond float16's range to infinity. */
  const toHalves: (values: Float32Array, into: Uint16Array, count: number) => void = base.func(
    'ggml_fp32_to_fp16_row',
    'void',
    [pointer, pointer, 'int64_t'],
  );
  const fromHalves: (halves: Uint16Array, into: Float32Array, count: number) => void = base.func(
    'ggml_fp16_to_fp32_row',
    'void',
    [pointer, pointer, 'int64_t'],
  );
  return {
    /** Does nothing and is safe on any thread whatever it is passed: stands in for a callback that ignores its arguments. */
    nothing: koffi.address(base.symbol('ggml_version')),
    ...{ llamaVersion, ggmlVersion, logSet, backendInit, backendLoadAllFromPath, registryByName, procAddress },
    ...{ deviceCount, deviceAt, deviceType, deviceName, deviceDescription, threadPoolParamsInit },
    ...{ tensorOverhead, tensorName, tensorElements, tensorBytes, tensorIsContiguous, tensorGet },
    ...{ toHalves, fromHalves },
  };
}

function bindModel(llama: LibraryHandle) {
  const modelDefaultParams: () => ModelParams = llama.func('llama_model_default_params', modelParamsStruct, []);
  const modelLoad: (path: string, params: ModelParams) => NullablePointer = llama.func(
    'llama_model_load_from_file',
    pointer,
    ['str', modelParamsStruct],
  );
  const modelFree: (model: Pointer) => void = llama.func('llama_model_free', 'void', [pointer]);
  const modelWidth: (model: Pointer) => number = llama.func('llama_model_n_embd', 'int32_t', [pointer]);
  const modelLayers: (model: Pointer) => number = llama.func('llama_model_n_layer', 'int32_t', [pointer]);
  const modelWindow: (model: Pointer) => number = llama.func('llama_model_n_swa', 'int32_t', [pointer]);
  const modelIsRecurrent: (model: Pointer) => boolean = llama.func('llama_model_is_recurrent', 'bool', [pointer]);
  const modelIsHybrid: (model: Pointer) => boolean = llama.func('llama_model_is_hybrid', 'bool', [pointer]);
  const modelVocabulary: (model: Pointer) => Pointer = llama.func('llama_model_get_vocab', pointer, [pointer]);
  const modelMetadataText: (...args: [Pointer, key: string, into: Uint8Array, room: number]) => number = llama.func(
    'llama_model_meta_val_str',
    'int32_t',
    [pointer, 'str', pointer, 'size_t'],
  );
  return {
    modelMetadataText,
    modelDefaultParams,
    modelLoad,
    modelFree,
    modelWidth,
    modelLayers,
    modelWindow,
    modelIsRecurrent,
    modelIsHybrid,
    modelVocabulary,
  };
}

function bindContext(llama: LibraryHandle) {
  const contextDefaultParams: () => ContextParams = llama.func('llama_context_default_params', contextParamsStruct, []);
  const contextNew: (model: Pointer, params: ContextParams) => NullablePointer = llama.func(
    'llama_init_from_model',
    pointer,
    [pointer, contextParamsStruct],
  );
  const contextFree: (context: Pointer) => void = llama.func('llama_free', 'void', [pointer]);
  const contextCells: (context: Pointer) => number = llama.func('llama_n_ctx', 'uint32_t', [pointer]);
  const contextMemory: (context: Pointer) => Pointer = llama.func('llama_get_memory', pointer, [pointer]);
  const attachThreadPool: (context: Pointer, pool: Pointer, poolBatch: Pointer) => void = llama.func(
    'llama_attach_threadpool',
    'void',
    [pointer, pointer, pointer],
  );
  const decode: (context: Pointer, batch: Batch) => number = llama.func('llama_decode', 'int32_t', [
    pointer,
    batchStruct,
  ]);
  const logits: (context: Pointer) => NullablePointer = llama.func('llama_get_logits', pointer, [pointer]);
  const synchronize: (context: Pointer) => void = llama.func('llama_synchronize', 'void', [pointer]);
  const memoryClear: (memory: Pointer, alsoContents: boolean) => void = llama.func('llama_memory_clear', 'void', [
    pointer,
    'bool',
  ]);
  const sequenceRemove: (...args: [memory: Pointer, sequence: number, from: number, to: number]) => boolean =
    llama.func('llama_memory_seq_rm', 'bool', [pointer, 'int32_t', 'int32_t', 'int32_t']);
  const sequenceCopy: (...args: [memory: Pointer, source: number, target: number, from: number, to: number]) => void =
    llama.func('llama_memory_seq_cp', 'void', [pointer, 'int32_t', 'int32_t', 'int32_t', 'int32_t']);
  const stateBytes: (context: Pointer, sequence: number) => number = llama.func('llama_state_seq_get_size', 'size_t', [
    pointer,
    'int32_t',
  ]);
  const stateGet: (...args: [context: Pointer, into: Uint8Array, bytes: number, sequence: number]) => number =
    llama.func('llama_state_seq_get_data', 'size_t', [pointer, pointer, 'size_t', 'int32_t']);
  const stateSet: (...args: [context: Pointer, from: Uint8Array, bytes: number, sequence: number]) => number =
    llama.func('llama_state_seq_set_data', 'size_t', [pointer, pointer, 'size_t', 'int32_t']);
  const sequenceFirst: (memory: Pointer, sequence: number) => number = llama.func(
    'llama_memory_seq_pos_min',
    'int32_t',
    [pointer, 'int32_t'],
  );
  const sequenceLast: (memory: Pointer, sequence: number) => number = llama.func(
    'llama_memory_seq_pos_max',
    'int32_t',
    [pointer, 'int32_t'],
  );
  return {
    ...{ contextDefaultParams, contextNew, contextFree, contextCells, contextMemory, attachThreadPool, decode, logits },
    ...{ synchronize, memoryClear, sequenceRemove, sequenceCopy, sequenceFirst, sequenceLast },
    ...{ stateBytes, stateGet, stateSet },
  };
}

function bindVocabulary(llama: LibraryHandle) {
  const vocabularyType: (vocabulary: Pointer) => number = llama.func('llama_vocab_type', 'int', [pointer]);
  const vocabularySize: (vocabulary: Pointer) => number = llama.func('llama_vocab_n_tokens', 'int32_t', [pointer]);
  const tokenIsControl: (vocabulary: Pointer, token: number) => boolean = llama.func('llama_vocab_is_control', 'bool', [
    pointer,
    'int32_t',
  ]);
  const tokenIsEndOfGeneration: (vocabulary: Pointer, token: number) => boolean = llama.func(
    'llama_vocab_is_eog',
    'bool',
    [pointer, 'int32_t'],
  );
  const beginningOfSequence: (vocabulary: Pointer) => number = llama.func('llama_vocab_bos', 'int32_t', [pointer]);
  const endOfSequence: (vocabulary: Pointer) => number = llama.func('llama_vocab_eos', 'int32_t', [pointer]);
  const endOfTurn: (vocabulary: Pointer) => number = llama.func('llama_vocab_eot', 'int32_t', [pointer]);
  const tokenize: (
    ...args: [
      Pointer,
      text: Uint8Array,
      bytes: number,
      into: Int32Array,
      room: number,
      special: boolean,
      parse: boolean,
    ]
  ) => number = llama.func('llama_tokenize', 'int32_t', [
    ...[pointer, pointer, 'int32_t', pointer, 'int32_t'],
    ...['bool', 'bool'],
  ]);
  const tokenPiece: (
    ...args: [Pointer, token: number, into: Uint8Array, room: number, strip: number, special: boolean]
  ) => number = llama.func('llama_token_to_piece', 'int32_t', [
    ...[pointer, 'int32_t', pointer, 'int32_t', 'int32_t', 'bool'],
  ]);
  return {
    ...{ vocabularyType, vocabularySize, tokenIsControl, tokenIsEndOfGeneration },
    ...{ beginningOfSequence, endOfSequence, endOfTurn, tokenize, tokenPiece },
  };
}

function bindSamplers(llama: LibraryHandle) {
  const samplerChainDefaultParams: () => SamplerChainParams = llama.func(
    'llama_sampler_chain_default_params',
    samplerChainParamsStruct,
    [],
  );
  const samplerChainNew: (params: SamplerChainParams) => Pointer = llama.func('llama_sampler_chain_init', pointer, [
    samplerChainParamsStruct,
  ]);
  const samplerChainAdd: (chain: Pointer, sampler: Pointer) => void = llama.func('llama_sampler_chain_add', 'void', [
    pointer,
    pointer,
  ]);
  const samplerApply: (sampler: Pointer, candidates: Pointer) => void = llama.func('llama_sampler_apply', 'void', [
    pointer,
    pointer,
  ]);
  const samplerAccept: (sampler: Pointer, token: number) => void = llama.func('llama_sampler_accept', 'void', [
    pointer,
    'int32_t',
  ]);
  const samplerFree: (sampler: Pointer) => void = llama.func('llama_sampler_free', 'void', [pointer]);
  const greedyNew: () => Pointer = llama.func('llama_sampler_init_greedy', pointer, []);
  const drawNew: (seed: number) => Pointer = llama.func('llama_sampler_init_dist', pointer, ['uint32_t']);
  const topKNew: (count: number) => Pointer = llama.func('llama_sampler_init_top_k', pointer, ['int32_t']);
  const topPNew: (share: number, keep: number) => Pointer = llama.func('llama_sampler_init_top_p', pointer, [
    'float',
    'size_t',
  ]);
  const minPNew: (share: number, keep: number) => Pointer = llama.func('llama_sampler_init_min_p', pointer, [
    'float',
    'size_t',
  ]);
  const temperatureNew: (value: number) => Pointer = llama.func('llama_sampler_init_temp', pointer, ['float']);
  const penaltiesNew: (
    ...args: [vocabularySize: number, lastTokens: number, repeat: number, frequency: number, presence: number]
  ) => Pointer = llama.func('llama_sampler_init_penalties', pointer, ['int32_t', 'int32_t', 'float', 'float', 'float']);
  const logitBiasNew: (vocabularySize: number, count: number, biases: Uint8Array) => Pointer = llama.func(
    'llama_sampler_init_logit_bias',
    pointer,
    ['int32_t', 'int32_t', pointer],
  );
  const grammarNew: (vocabulary: Pointer, grammar: string, root: string) => NullablePointer = llama.func(
    'llama_sampler_init_grammar',
    pointer,
    [pointer, 'str', 'str'],
  );
  return {
    ...{ samplerChainDefaultParams, samplerChainNew, samplerChainAdd, samplerApply, samplerAccept, samplerFree },
    ...{ greedyNew, drawNew, topKNew, topPNew, minPNew, temperatureNew, penaltiesNew, logitBiasNew, grammarNew },
    tokenDataArray: tokenDataArrayStruct,
  };
}

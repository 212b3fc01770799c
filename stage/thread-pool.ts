/**
 * The threads that compute, made once and kept: without a pool of ours llama.cpp makes threads anew for each graph.
 *
 * Between graphs they sleep (`poll` 0): a stage that waits for its neighbours must not take the CPU they need.
 */
import koffi from 'koffi';

import { assert, present } from '../protocol/assert.ts';
import type { LlamaLibrary } from './llama-library.ts';
import { threadPoolParamsStruct, type NullablePointer, type Pointer, type ThreadPoolParams } from './llama-structs.ts';

const newThreadPool = koffi.proto('void *', [koffi.pointer(threadPoolParamsStruct)]);
const freeThreadPool = koffi.proto('void', ['void *']);

export interface ThreadPool {
  readonly pool: Pointer;
  /** After every context that uses it is freed. */
  readonly free: () => void;
}

/** @param poll 0: sleep at once when there is no work, to 100: spin for as long as a large graph takes */
export function openThreadPool(library: LlamaLibrary, threads: number, poll: number): ThreadPool {
  const { call } = library;
  const registry = present(call.registryByName('CPU'), 'a CPU backend is loaded');
  const address = (name: string): Pointer => present(call.procAddress(registry, name), `the CPU backend has ${name}`);
  const params: ThreadPoolParams = { cpuMask: [], threads: 0, priority: 0, poll: 0, strictCpu: false, paused: false };
  call.threadPoolParamsInit(params, threads);
  assert(params.threads === threads, 'the defaults are those of the asked number of threads');
  const made: unknown = koffi.call(address('ggml_threadpool_new'), newThreadPool, { ...params, poll });
  const pool = present(asPointer(made), 'a thread pool is made');
  const free = address('ggml_threadpool_free');
  return { pool, free: () => void koffi.call(free, freeThreadPool, pool) };
}

const asPointer = (value: unknown): NullablePointer => (typeof value === 'bigint' ? value : null);

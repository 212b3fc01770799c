/**
 * Takes the hidden state out of the middle of a decode: the output of a slice's last layer.
 *
 * llama.cpp asks about every node of its graph (`cb_eval`). Answering yes for `l_out-<n-1>` has that tensor computed and shown;
 * answering no when it is shown ends the graph there, so the final norm and the output matrix are not computed.
 */
import koffi from 'koffi';

import { assert } from '../protocol/assert.ts';
import type { LlamaLibrary } from './llama-library.ts';
import { tensorNameBytes, tensorNameOffset, type Pointer } from './llama-structs.ts';

const evalCallback = koffi.proto('bool', ['void *', 'bool', 'void *']);

export class HiddenStateTap {
  /** For `llama_context_params.cb_eval`. */
  readonly callback: Pointer;

  readonly #library: LlamaLibrary;
  readonly #name: Uint8Array;
  readonly #width: number;
  /** Of the largest decode; for those whose rows go nowhere else. */
  readonly #values: Float32Array;
  #target: Float32Array;
  /** Tensors keep their addresses from one graph to the next, so each name is mapped once. */
  readonly #names = new Map<Pointer, Uint8Array>();
  #taken = 0;

  /** @param layers layers in the slice; @param shape rows of the largest decode, and floats per row */
  constructor(library: LlamaLibrary, layers: number, shape: { readonly rows: number; readonly width: number }) {
    this.#library = library;
    this.#name = Buffer.from(`l_out-${layers - 1}\0`);
    this.#width = shape.width;
    this.#values = new Float32Array(shape.rows * shape.width);
    this.#target = this.#values;
    this.callback = koffi.register(
      (tensor: Pointer, asks: boolean) => (asks ? this.#isWanted(tensor) : this.#take(tensor)),
      koffi.pointer(evalCallback),
    );
  }

  /** Call before a decode. @param target where its first rows go; otherwise they are the tap's own until the next decode */
  reset(target: Float32Array | null): void {
    this.#taken = 0;
    this.#target = target ?? this.#values;
  }

  /** The hidden state of the decode that just ran: of its `rows`, those that the target has room for. */
  rows(rows: number): Float32Array {
    assert(
      this.#taken === rows * this.#width,
      `the slice gave ${this.#taken} floats for ${rows} rows of ${this.#width}`,
    );
    return this.#target.subarray(0, this.#taken);
  }

  close(): void {
    koffi.unregister(this.callback);
    this.#names.clear();
  }

  #isWanted(tensor: Pointer): boolean {
    const name = this.#nameOf(tensor);
    const wanted = this.#name;
    for (let index = 0; index < wanted.length; index += 1) {
      if (name[index] !== wanted[index]) return false;
    }
    return true;
  }

  /** Copies the tensor out (from a GPU, if it is there) and ends the graph. */
  #take(tensor: Pointer): boolean {
    const { call } = this.#library;
    const count = call.tensorElements(tensor);
    const bytes = call.tensorBytes(tensor);
    const isPlain = count <= this.#values.length && bytes === count * 4 && call.tensorIsContiguous(tensor);
    if (isPlain) {
      call.tensorGet(tensor, this.#target, 0, Math.min(bytes, this.#target.byteLength));
      this.#taken = count;
    }
    return false;
  }

  #nameOf(tensor: Pointer): Uint8Array {
    const known = this.#names.get(tensor);
    if (known !== undefined) return known;
    assert(
      this.#library.call.tensorName(tensor) === tensor + BigInt(tensorNameOffset),
      'a tensor keeps its name where this release of ggml has it',
    );
    const name = new Uint8Array(koffi.view(tensor + BigInt(tensorNameOffset), tensorNameBytes));
    this.#names.set(tensor, name);
    return name;
  }
}

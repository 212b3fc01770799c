/**
 * The first oracle: the uncut model in libllama, with nothing of ours in between but the typed functions themselves.
 *
 * It feeds token rows and reads logits, and can take note of the hidden state at every layer boundary on the way. It shares
 * with a stage the settings of a context (they are part of a shape), and neither its batches, its tap, nor its slices.
 */
import koffi from 'koffi';

import { assert, present } from '../../protocol/assert.ts';
import type { KvType } from '../../protocol/plan.ts';
import { loadLlamaLibrary, type LlamaLibrary } from '../../stage/llama-library.ts';
import type { NullablePointer, Pointer } from '../../stage/llama-structs.ts';
import { NativeMemory } from '../../stage/native-memory.ts';
import { openVocabulary, type Vocabulary } from '../../stage/vocabulary.ts';

/** Rows of one decode, in order. */
export interface TokenBatch {
  readonly tokens: readonly number[];
  readonly positions: readonly number[];
  readonly sequences: readonly number[];
  /** Whether a row's logits are wanted. */
  readonly outputs: readonly boolean[];
}

export interface UncutOutcome {
  /** Of each layer but the last, rows x width; empty when the model is not observed. Copies. */
  readonly hidden: readonly Float32Array[];
  /** One for each row whose logits were wanted, in row order. Copies. */
  readonly logits: readonly Float32Array[];
}

export interface UncutOptions {
  readonly path: string;
  readonly contextTokens: number;
  readonly sequences: number;
  readonly batchRows: number;
  readonly kv: { readonly keys: KvType; readonly values: KvType };
  /** Whether the hidden state at the layer boundaries is taken out. */
  readonly observes: boolean;
}

const evalCallback = koffi.proto('bool', ['void *', 'bool', 'void *']);
const boundaryName = /^l_out-(\d+)$/;
/** `enum ggml_type` of the KV types used here. */
const ggmlTypes: Readonly<Partial<Record<KvType, number>>> = { f32: 0, f16: 1 };

export class UncutModel {
  readonly width: number;
  readonly layers: number;
  readonly vocabulary: Vocabulary;

  readonly #library: LlamaLibrary;
  readonly #model: Pointer;
  readonly #context: Pointer;
  readonly #memory: Pointer;
  readonly #sequences: number;
  readonly #batch: RowMemory;
  readonly #callback: NullablePointer;
  readonly #names = new Map<Pointer, Uint8Array>();
  #hidden: Float32Array[] = [];

  constructor({ path, contextTokens, sequences, batchRows, kv, observes }: UncutOptions) {
    const library = loadLlamaLibrary({ device: 'cpu', folder: null });
    const { call } = library;
    this.#library = library;
    this.#sequences = sequences;
    const noDevices = new NativeMemory(8);
    const modelParams = { ...call.modelDefaultParams(), devices: noDevices.address, splitMode: 0, gpuLayers: 0 };
    this.#model = present(call.modelLoad(path, modelParams), 'libllama loads the uncut model');
    noDevices.free();
    this.width = call.modelWidth(this.#model);
    this.layers = call.modelLayers(this.#model);
    this.vocabulary = openVocabulary(library, this.#model);
    this.#batch = new RowMemory(batchRows);
    this.#callback = observes ? koffi.register(this.#onNode.bind(this), koffi.pointer(evalCallback)) : null;
    const params = {
      ...call.contextDefaultParams(),
      contextCells: contextTokens + 1,
      batchRows,
      ubatchRows: batchRows,
      sequences: sequences + 1,
      threads: 1,
      threadsBatch: 1,
      flashAttention: 1,
      typeK: present(ggmlTypes[kv.keys], 'a type of keys that is known here'),
      typeV: present(ggmlTypes[kv.values], 'a type of values that is known here'),
      evalCallback: this.#callback,
      swaFull: true,
      kvUnified: true,
    };
    this.#context = present(call.contextNew(this.#model, params), 'libllama makes a context');
    this.#memory = call.contextMemory(this.#context);
  }

  decode(batch: TokenBatch): UncutOutcome {
    const { call } = this.#library;
    const rows = batch.tokens.length;
    this.#hidden = [];
    const status = call.decode(this.#context, this.#batch.fill(batch));
    assert(status === 0, `the uncut model decodes: ${String(status)}`);
    const isComplete = this.#callback === null || this.#hidden.length === this.layers - 1;
    assert(isComplete && this.#hidden.every(({ length }) => length === rows * this.width), 'every boundary was seen');
    const size = this.vocabulary.size;
    const count = batch.outputs.filter((isWanted) => isWanted).length;
    if (count === 0) return { hidden: this.#hidden, logits: [] };
    const address = present(call.logits(this.#context), 'there are logits');
    const values = new Float32Array(koffi.view(address, count * size * 4));
    const logits = Array.from({ length: count }, (_, index) => values.slice(index * size, (index + 1) * size));
    return { hidden: this.#hidden, logits };
  }

  /** Forgets every sequence. */
  clear(): void {
    for (let sequence = 0; sequence < this.#sequences; sequence += 1) this.forget(sequence);
  }

  forget(sequence: number): void {
    this.#library.call.sequenceRemove(this.#memory, sequence, -1, -1);
  }

  close(): void {
    const { call } = this.#library;
    call.contextFree(this.#context);
    call.modelFree(this.#model);
    if (this.#callback !== null) koffi.unregister(this.#callback);
    this.#batch.free();
  }

  /** libllama asks about a node, then shows it: the outputs of all layers but the last are copied, and the graph goes on. */
  #onNode(tensor: Pointer, asks: boolean): boolean {
    const layer = this.#layerOf(tensor);
    const isWanted = layer !== null && layer < this.layers - 1;
    if (asks) return isWanted;
    if (isWanted) {
      assert(layer === this.#hidden.length, 'layers come in order');
      const values = new Float32Array(this.#library.call.tensorElements(tensor));
      this.#library.call.tensorGet(tensor, values, 0, values.byteLength);
      this.#hidden.push(values);
    }
    return true;
  }

  /** The layer whose output a tensor is; `null` for every other tensor. */
  #layerOf(tensor: Pointer): number | null {
    let name = this.#names.get(tensor);
    if (name === undefined) {
      name = new Uint8Array(koffi.view(this.#library.call.tensorName(tensor), 64));
      this.#names.set(tensor, name);
    }
    // 'l' and '_': most nodes are told apart without making a text of their names.
    if (name[0] !== 0x6c || name[1] !== 0x5f) return null;
    const found = boundaryName.exec(Buffer.from(name.subarray(0, name.indexOf(0))).toString('latin1'));
    return found === null ? null : Number(found[1]);
  }
}

/** The arrays that `struct llama_batch` points at. */
class RowMemory {
  readonly #rows: number;
  readonly #tokens: NativeMemory;
  readonly #positions: NativeMemory;
  readonly #counts: NativeMemory;
  readonly #sequences: NativeMemory;
  readonly #lists: NativeMemory;
  readonly #outputs: NativeMemory;

  constructor(rows: number) {
    this.#rows = rows;
    this.#tokens = new NativeMemory(rows * 4);
    this.#positions = new NativeMemory(rows * 4);
    this.#counts = new NativeMemory(rows * 4);
    this.#sequences = new NativeMemory(rows * 4);
    this.#lists = new NativeMemory(rows * 8);
    this.#outputs = new NativeMemory(rows);
  }

  fill({ tokens, positions, sequences, outputs }: TokenBatch) {
    const rows = tokens.length;
    assert(rows > 0 && rows <= this.#rows, 'the batch has room for its rows');
    new Int32Array(this.#tokens.buffer, 0, rows).set(tokens);
    new Int32Array(this.#positions.buffer, 0, rows).set(positions);
    new Int32Array(this.#counts.buffer, 0, rows).fill(1);
    new Int32Array(this.#sequences.buffer, 0, rows).set(sequences);
    new BigUint64Array(this.#lists.buffer, 0, rows).set(
      sequences.map((_, row) => this.#sequences.address + BigInt(row * 4)),
    );
    new Int8Array(this.#outputs.buffer, 0, rows).set(outputs.map(Number));
    return {
      rows,
      tokens: this.#tokens.address,
      embeddings: null,
      positions: this.#positions.address,
      sequenceCounts: this.#counts.address,
      sequenceIds: this.#lists.address,
      outputs: this.#outputs.address,
    };
  }

  free(): void {
    for (const memory of [this.#tokens, this.#positions, this.#counts, this.#sequences, this.#lists, this.#outputs]) {
      memory.free();
    }
  }
}

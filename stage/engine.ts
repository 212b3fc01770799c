/**
 * One slice of a model that runs: batches of rows in, hidden state or logits out, and the KV cache of every session.
 *
 * Everything is synchronous and belongs to the thread that opened it. What a decode returns are views into memory that the
 * next decode writes again.
 */
import { assert, present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import { hiddenLength, wireOf, type HiddenState } from '../protocol/hidden-state.ts';
import type { WireType } from '../protocol/plan.ts';
import { CellOrder } from './cell-order.ts';
import { HalfPrecision } from './half-precision.ts';
import { checkOptions } from './engine-bounds.ts';
import { isFinal, loadSlice, type LoadedSlice, type SliceOptions } from './loaded-slice.ts';
import { NativeBatch } from './native-batch.ts';
import { viewFloats } from './native-memory.ts';
import { restoreRows, saveRows } from './sequence-copy.ts';
import { exactRows } from './shape.ts';
import { openVocabulary, type Vocabulary } from './vocabulary.ts';

export interface EngineOptions extends SliceOptions {
  /** Of the hidden state that comes out and goes in. */
  readonly wire: WireType;
}

/** Rows of one decode, in an order that is kept. Lists may be longer than `rows`; what is beyond is not read. */
export interface DecodeBatch {
  /** 1 to `batchRows`. */
  readonly rows: number;
  readonly input: DecodeInput;
  /** Position of each row in its sequence: the sequence's next one, and so on without a gap. */
  readonly positions: ArrayLike<number>;
  /** Sequence id of each row. */
  readonly sequences: ArrayLike<number>;
  /** In `fast` as well, a lone row gets one beside it, as always in `exact`: it belongs in that shape class (R3). */
  readonly padsLoneRow?: boolean;
  /** Final slice: not 0 for rows whose logits are wanted. A slice that is not final gives the hidden state of every row. */
  readonly outputs: ArrayLike<number>;
  /** Where the hidden state of the rows goes; as many rows, of the engine's type. */
  readonly into?: HiddenState;
}

/** `tokens` for the head's slice; `hidden` (parts that together have the rows, in order) for every other. */
export type DecodeInput =
  | { readonly kind: 'tokens'; readonly tokens: ArrayLike<number> }
  | { readonly kind: 'hidden'; readonly parts: readonly HiddenState[] };

/** Arrays are views, valid until the next decode or `close`; `hidden` is `into` where that was given. */
export type DecodeOutcome =
  | { readonly kind: 'hidden'; readonly hidden: HiddenState; readonly paddingRows: number }
  | { readonly kind: 'logits'; readonly rows: readonly RowLogits[]; readonly paddingRows: number }
  /** Nothing changed: no row of the batch ran. */
  | { readonly kind: 'kv-cache-full' };

export interface RowLogits {
  /** Index of the row in its batch. */
  readonly row: number;
  /** One for each token id. */
  readonly logits: Float32Array;
}

export interface Engine {
  /** Floats of one row of hidden state. */
  readonly width: number;
  readonly wire: WireType;
  readonly takesTokens: boolean;
  readonly isFinal: boolean;
  /** KV cells for all sequences together, at least what was asked for. */
  readonly cells: number;
  readonly batchRows: number;
  /** The sequence that no session has: for the probe; padding uses it within a decode. */
  readonly reservedSequence: number;
  readonly vocabulary: Vocabulary;
  /**
   * Whether a sequence that has the first rows of another one is as good as one that ran them: not where a window slides, since
   * rows outside it may be gone, or where state is rolled on from row to row.
   */
  readonly keepsPrefixes: boolean;
  /** @throws STAGE_DECODE: the KV cache is undefined then. TOKEN_OUT_OF_RANGE: nothing ran. */
  decode(batch: DecodeBatch): DecodeOutcome;
  /** Forgets every sequence: the next rows lie where they would after the load. */
  clear(): void;
  /** Forgets a sequence. */
  removeSequence(sequence: number): void;
  /** Forgets a sequence from a position on. */
  truncateSequence(sequence: number, length: number): void;
  /**
   * Makes positions `from` (included) to `to` (excluded) of a sequence part of another as well, without copying cells. Where
   * cells are kept in order (`exact`, sliding windows), each has its own instead, and `from` must be 0.
   */
  copySequence(copy: SequenceCopy): void;
  /** Makes a sequence's rows those of another one, which has none; no cell is copied. */
  renameSequence(from: number, to: number): void;
  /** The position that a sequence's next row has: 0 when it is empty. */
  nextPosition(sequence: number): number;
  /** KV cells in use; cells that sequences share are counted for each. */
  usedCells(): number;
  close(): void;
}

export interface SequenceCopy {
  readonly source: number;
  readonly target: number;
  readonly from: number;
  readonly to: number;
}

/** @throws what `loadSlice` throws; INVALID_ARGUMENT for a value out of its range */
export function openEngine(options: EngineOptions): Engine {
  checkOptions(options);
  return new SliceEngine(loadSlice(options), options);
}

class SliceEngine implements Engine {
  readonly width: number;
  readonly wire: WireType;
  readonly takesTokens: boolean;
  readonly isFinal: boolean;
  readonly cells: number;
  readonly batchRows: number;
  readonly reservedSequence: number;
  readonly vocabulary: Vocabulary;
  readonly keepsPrefixes: boolean;

  readonly #slice: LoadedSlice;
  readonly #batch: NativeBatch;
  readonly #isExact: boolean;
  /** Where cells are kept in the order of positions; `null` elsewhere. */
  readonly #order: CellOrder | null;
  readonly #inputDivisor: number;
  /** `null` where hidden state is float32. */
  readonly #halfPrecision: HalfPrecision | null;
  #logits: { readonly address: bigint; readonly values: Float32Array } | null = null;
  #isOpen = true;

  constructor(slice: LoadedSlice, options: EngineOptions) {
    this.#slice = slice;
    this.wire = options.wire;
    this.takesTokens = options.layers.first === 0;
    this.isFinal = isFinal(options);
    this.width = slice.width;
    this.cells = slice.cells;
    this.batchRows = options.batchRows;
    this.reservedSequence = options.sequences;
    this.vocabulary = openVocabulary(slice.library, slice.model);
    this.#batch = new NativeBatch(slice.batchRows, this.takesTokens ? 0 : slice.width);
    this.#isExact = options.decode === 'exact';
    // Where there are holes, llama.cpp also fills cells of live sequences that have left a sliding window: a sequence that is
    // cut back would miss them.
    const { modelWindow, modelIsRecurrent, modelIsHybrid } = slice.library.call;
    const hasWindow = modelWindow(slice.model) > 0;
    this.keepsPrefixes = !hasWindow && !modelIsRecurrent(slice.model) && !modelIsHybrid(slice.model);
    const keepsOrder = this.#isExact || hasWindow;
    this.#order = keepsOrder ? new CellOrder(slice.cells) : null;
    this.#inputDivisor = Math.fround(options.inputDivisor);
    this.#halfPrecision = this.wire === 'f16' ? new HalfPrecision(slice.library, slice.width) : null;
  }

  decode(batch: DecodeBatch): DecodeOutcome {
    assert(this.#isOpen, 'the engine is open');
    assert(batch.rows >= 1 && batch.rows <= this.batchRows, 'the batch has 1 to batchRows rows');
    this.#fillInput(batch);
    this.#fillRows(batch);
    this.#closeHoles();
    const isPadded = this.#isExact || batch.padsLoneRow === true;
    const paddingRows = isPadded && batch.rows < exactRows.least ? exactRows.least - batch.rows : 0;
    if (paddingRows > 0) this.#fillPadding();
    const rows = batch.rows + paddingRows;
    this.#setOutputs(batch, rows);

    const { library, context, memory, tap } = this.#slice;
    tap?.reset(batch.into instanceof Float32Array ? batch.into : null);
    const status = library.call.decode(context, this.#batch.struct(rows));
    if (status === 1) return { kind: 'kv-cache-full' };
    if (status !== 0) throw new P4Error('STAGE_DECODE', { status, rows });
    this.#heedRows(batch.rows);
    // Where cells are kept in order it had the last one in use, so it leaves no hole.
    if (paddingRows > 0) library.call.sequenceRemove(memory, this.reservedSequence, -1, -1);
    if (tap === null) return { kind: 'logits', rows: this.#rowLogits(batch, rows), paddingRows };
    return { kind: 'hidden', hidden: this.#outgoing(batch, tap.rows(rows)), paddingRows };
  }

  clear(): void {
    assert(this.#isOpen, 'the engine is open');
    // What the cells held stays in memory; nothing looks at cells that are empty.
    this.#slice.library.call.memoryClear(this.#slice.memory, false);
    this.#order?.clear();
  }

  removeSequence(sequence: number): void {
    this.#removeFrom(sequence, -1);
  }

  truncateSequence(sequence: number, length: number): void {
    assert(Number.isInteger(length) && length >= 0, 'a sequence is cut at a position');
    this.#removeFrom(sequence, length);
  }

  copySequence({ source, target, from, to }: SequenceCopy): void {
    this.#checkSequence(source);
    this.#checkSequence(target);
    assert(from >= 0 && to >= from, 'positions are copied from first to last');
    if (this.#order !== null) {
      assert(from === 0 && to <= this.nextPosition(source), 'a beginning is copied');
      this.#closeHoles();
      restoreRows(this.#place, target, saveRows(this.#place, { sequence: source, from, to }));
      for (let row = from; row < to; row += 1) this.#order.append(target);
      return;
    }
    this.#slice.library.call.sequenceCopy(this.#slice.memory, source, target, from, to);
  }

  renameSequence(from: number, to: number): void {
    assert(this.nextPosition(to) === 0, 'the other sequence has no rows');
    this.#checkSequence(from);
    const { library, memory } = this.#slice;
    // Cells are marked with all sequences that they belong to: the rows stay where they are.
    library.call.sequenceCopy(memory, from, to, -1, -1);
    library.call.sequenceRemove(memory, from, -1, -1);
    this.#order?.rename(from, to);
  }

  nextPosition(sequence: number): number {
    this.#checkSequence(sequence);
    return this.#slice.library.call.sequenceLast(this.#slice.memory, sequence) + 1;
  }

  usedCells(): number {
    const { library, memory } = this.#slice;
    let used = 0;
    for (let sequence = 0; sequence <= this.reservedSequence; sequence += 1) {
      const next = this.nextPosition(sequence);
      if (next > 0) used += next - library.call.sequenceFirst(memory, sequence);
    }
    return used;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#logits = null;
    this.#slice.free();
    this.#batch.free();
  }

  #fillInput({ rows, input }: DecodeBatch): void {
    switch (input.kind) {
      case 'tokens': {
        assert(this.takesTokens, 'only the head takes tokens');
        const size = this.vocabulary.size;
        for (let row = 0; row < rows; row += 1) {
          const token = input.tokens[row] ?? -1;
          if (!Number.isInteger(token) || token < 0 || token >= size)
            throw new P4Error('TOKEN_OUT_OF_RANGE', { token, vocabulary: size });
          this.#batch.tokens[row] = token;
        }
        return;
      }
      case 'hidden': {
        this.#fillHidden(input.parts, rows * this.width);
        return;
      }
    }
  }

  /** Each part goes straight to where libllama reads it. */
  #fillHidden(parts: readonly HiddenState[], count: number): void {
    assert(!this.takesTokens, 'the head takes no hidden state');
    const { hidden } = this.#batch;
    let at = 0;
    for (const part of parts) {
      assert(at + hiddenLength(part) <= count, 'hidden state has the shape of the batch');
      if (part instanceof Float32Array) hidden.set(part, at);
      else present(this.#halfPrecision, 'an engine of float16').widen(part, hidden.subarray(at));
      at += hiddenLength(part);
    }
    assert(at === count, 'hidden state has the shape of the batch');
    if (this.#inputDivisor === 1) return;
    for (let index = 0; index < count; index += 1) hidden[index] = (hidden[index] ?? NaN) / this.#inputDivisor;
  }

  #fillRows({ rows, positions, sequences }: DecodeBatch): void {
    for (let row = 0; row < rows; row += 1) {
      const position = positions[row] ?? -1;
      const sequence = sequences[row] ?? -1;
      assert(position >= 0 && sequence >= 0 && sequence <= this.reservedSequence, 'each row has a place');
      this.#batch.positions[row] = position;
      this.#batch.sequences[row] = sequence;
    }
  }

  /** A lone row is joined by a copy of itself in the reserved sequence, so that the decode stays in its shape class (X2). */
  #fillPadding(): void {
    const { tokens, hidden, positions, sequences } = this.#batch;
    if (this.takesTokens) tokens[1] = tokens[0] ?? 0;
    else hidden.copyWithin(this.width, 0, this.width);
    positions[1] = positions[0] ?? 0;
    sequences[1] = this.reservedSequence;
  }

  /**
   * A slice that is not final must give every row: llama.cpp drops the others before the last layer's feed-forward part.
   * In `exact`, the rows with logits stay in the shape class as well: after that drop they are a decode of their own.
   */
  #setOutputs(batch: DecodeBatch, rows: number): void {
    const { outputs } = this.#batch;
    if (!this.isFinal) {
      outputs.fill(1, 0, rows);
      return;
    }
    let wanted = 0;
    for (let row = 0; row < rows; row += 1) {
      const isWanted = row < batch.rows && (batch.outputs[row] ?? 0) !== 0;
      outputs[row] = isWanted ? 1 : 0;
      if (isWanted) wanted += 1;
    }
    for (let row = rows - 1; this.#isExact && wanted === 1 && row >= 0; row -= 1) {
      if (outputs[row] !== 0) continue;
      outputs[row] = 1;
      wanted += 1;
    }
  }

  #outgoing({ rows, into }: DecodeBatch, tapped: Float32Array): HiddenState {
    const values = tapped.subarray(0, rows * this.width);
    const isFit = into === undefined || (wireOf(into) === this.wire && hiddenLength(into) === values.length);
    assert(isFit, 'the rows have their room');
    return this.#halfPrecision?.round(values, into) ?? into ?? values;
  }

  #rowLogits(batch: DecodeBatch, rows: number): RowLogits[] {
    const { outputs } = this.#batch;
    let count = 0;
    for (let row = 0; row < rows; row += 1) count += outputs[row] ?? 0;
    if (count === 0) return [];
    const size = this.vocabulary.size;
    const values = this.#logitValues(count * size);
    const wanted: RowLogits[] = [];
    let position = 0;
    for (let row = 0; row < rows; row += 1) {
      if (outputs[row] === 0) continue;
      if (row < batch.rows && (batch.outputs[row] ?? 0) !== 0) {
        wanted.push({ row, logits: values.subarray(position * size, (position + 1) * size) });
      }
      position += 1;
    }
    return wanted;
  }

  /** llama.cpp keeps its logits in one place until it needs a larger one. */
  #logitValues(count: number): Float32Array {
    const address = this.#slice.library.call.logits(this.#slice.context);
    assert(address !== null, 'a final slice has logits');
    if (this.#logits?.address !== address || this.#logits.values.length < count) {
      this.#logits = { address, values: viewFloats(address, count) };
    }
    return this.#logits.values;
  }

  get #place() {
    return { ...this.#slice, reserved: this.reservedSequence };
  }

  #heedRows(rows: number): void {
    if (this.#order === null) return;
    for (let row = 0; row < rows; row += 1) this.#order.append(this.#batch.sequences[row] ?? 0);
  }

  /** What lies behind cells that were left moves up, so that new rows come to lie behind all others (X2). */
  #closeHoles(): void {
    if (this.#order === null || !this.#order.hasHoles) return;
    const displaced = this.#order.displaced();
    const { library, memory } = this.#slice;
    const saved = displaced.map(({ sequence, rows }) => saveRows(this.#place, { sequence, from: 0, to: rows }));
    for (const { sequence } of displaced) library.call.sequenceRemove(memory, sequence, -1, -1);
    displaced.forEach(({ sequence }, index) => {
      restoreRows(this.#place, sequence, saved[index] ?? []);
    });
    this.#order.settle(displaced);
  }

  #removeFrom(sequence: number, position: number): void {
    this.#checkSequence(sequence);
    const isRemoved = this.#slice.library.call.sequenceRemove(this.#slice.memory, sequence, position, -1);
    assert(isRemoved, 'a KV cache of full size drops any part of a sequence');
    this.#order?.remove(sequence, Math.max(position, 0));
  }

  #checkSequence(sequence: number): void {
    assert(this.#isOpen, 'the engine is open');
    assert(Number.isInteger(sequence) && sequence >= 0 && sequence <= this.reservedSequence, 'the sequence exists');
  }
}

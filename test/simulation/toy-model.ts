/**
 * A model that shows every mistake: a stage's KV cache is a running hash of what it was fed, and what it puts out is that
 * hash, so a row that is skipped, doubled, out of order or of another session changes every later token. A draw depends
 * on the hash, on the step and on all tokens that its sampler was given, and on which of them were drawn (X3).
 */
import { assert, present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { HiddenState } from '../../protocol/hidden-state.ts';
import type { SlotIndex, TokenId } from '../../protocol/ids.ts';
import { tokenId } from '../../protocol/ids.ts';
import type { Sampling } from '../../protocol/sampling.ts';
import type { DecodeBatch, DecodeOutcome, SequenceCopy } from '../../stage/engine.ts';
import type { CoreEngine } from '../../stage/stage-core.ts';
import type { RequestSampler } from '../../stage/tail-sampling.ts';
import { Violation } from './violation.ts';

export const vocabularySize = 97;
/** The token that ends a generation. */
export const endToken = 0;

/** Hashes are whole numbers below 2^24, which float32 holds exactly. */
const hashBits = 24;
const seedHash = 12_345;

function mixed(hash: number, value: number): number {
  let next = Math.imul(hash ^ Math.imul(value + 1, 0x85ebca6b), 0xc2b2ae35);
  next ^= next >>> 13;
  next = Math.imul(next, 0x27d4eb2f);
  return (next ^ (next >>> 15)) >>> (32 - hashBits);
}

export interface ToyEngineOptions {
  readonly isFirst: boolean;
  readonly isFinal: boolean;
  /** Of sessions and kept prefixes. */
  readonly sequences: number;
  readonly cells: number;
  readonly isExact: boolean;
  /** Whether rows are cheaper one after the other than together, as on a CPU with weights of eight bits. */
  readonly isQuickAlone: boolean;
}

export class ToyEngine implements CoreEngine {
  readonly width = 1;
  readonly wire = 'f32';
  readonly takesTokens: boolean;
  readonly isFinal: boolean;
  readonly reservedSequence: number;
  readonly vocabulary = { size: vocabularySize };
  readonly #isExact: boolean;
  readonly #isQuickAlone: boolean;
  /** What all decodes have taken: the head groups its rows by it. */
  spentUs = 0;
  readonly #cells: number;
  /** By sequence: the hash behind each row. */
  readonly #rows = new Map<number, number[]>();
  /** Rows that have to run in a certain shape (R3): by slot and position, whether alone. */
  readonly #shapes = new Map<number, Map<number, readonly boolean[]>>();

  constructor({ isFirst, isFinal, sequences, cells, isExact, isQuickAlone }: ToyEngineOptions) {
    this.takesTokens = isFirst;
    this.isFinal = isFinal;
    this.reservedSequence = sequences;
    this.#cells = cells;
    this.#isExact = isExact;
    this.#isQuickAlone = isQuickAlone;
  }

  /** Of sequences that have any. */
  get rowsBySequence(): ReadonlyMap<number, number> {
    const lengths = [...this.#rows].map(([sequence, rows]) => [sequence, rows.length] as const);
    return new Map(lengths.filter(([, length]) => length > 0));
  }

  /** The shape that a row has to have, now and after a loss: it is looked at when it runs. */
  expectShape(slot: SlotIndex, position: number, alone: boolean): void {
    const shapes = this.#shapes.get(slot) ?? new Map<number, readonly boolean[]>();
    this.#shapes.set(slot, shapes.set(position, [...(shapes.get(position) ?? []), alone]));
  }

  decode({ rows, input, positions, sequences, outputs, padsLoneRow, into }: DecodeBatch): DecodeOutcome {
    const hashes: number[] = [];
    const inputs = input.kind === 'tokens' ? input.tokens : input.parts.flatMap(hashesOf);
    this.spentUs += rows === 1 ? 1_000 : this.#isQuickAlone ? 4_000 + 500 * rows : 1_000 + 200 * rows;
    const isLone = rows === 1 && padsLoneRow !== true && !this.#isExact;
    for (let row = 0; row < rows; row++) {
      const sequence = sequences[row] ?? 0;
      const position = positions[row] ?? 0;
      const kept = this.#rows.get(sequence) ?? [];
      assert(kept.length === position, 'a row has its sequence’s next position');
      this.#requireShape(sequence, position, isLone);
      const hash = mixed(kept.at(-1) ?? seedHash, present(inputs[row], 'every row has its input'));
      kept.push(hash);
      this.#rows.set(sequence, kept);
      hashes.push(hash);
    }
    this.#requireRoom();
    if (!this.isFinal) {
      const hidden = Float32Array.from(hashes);
      // A probe's rows go nowhere.
      if (into instanceof Float32Array) into.set(hidden);
      return { kind: 'hidden', hidden, paddingRows: 0 };
    }
    const drawn = hashes.flatMap((hash, row) => (outputs[row] === 0 ? [] : [{ row, logits: Float32Array.of(hash) }]));
    return { kind: 'logits', rows: drawn, paddingRows: 0 };
  }

  /** Of the items that brought this row, those before the one that runs were dropped. */
  #requireShape(sequence: number, position: number, isLone: boolean): void {
    const expected = this.#shapes.get(sequence)?.get(position) ?? [];
    const at = expected.indexOf(isLone);
    if (expected.length > 0 && at < 0 && !this.#isExact) {
      const found = isLone ? 'alone' : 'in company';
      throw new Violation('R3', `slot ${sequence}, row ${position}: ${found}, unlike what its item says`);
    }
    this.#shapes.get(sequence)?.set(position, expected.slice(at + 1));
  }

  clear(): void {
    this.#rows.clear();
    this.#shapes.clear();
  }

  /** Its shapes stay: those of the slot's next session may be among them, in frames that wait behind this. */
  removeSequence(sequence: number): void {
    this.#rows.delete(sequence);
  }

  truncateSequence(sequence: number, length: number): void {
    this.#rows.get(sequence)?.splice(length);
  }

  copySequence({ source, target, from, to }: SequenceCopy): void {
    const rows = this.#rows.get(source) ?? [];
    assert(from === 0 && to <= rows.length, 'a beginning is copied');
    this.#rows.set(target, rows.slice(0, to));
    this.#requireRoom();
  }

  renameSequence(from: number, to: number): void {
    assert((this.#rows.get(to)?.length ?? 0) === 0, 'the other sequence has no rows');
    this.#rows.set(to, this.#rows.get(from) ?? []);
    this.removeSequence(from);
  }

  /** Every session has the cells that it was promised. The probe's row lies in one of the stage's own. */
  #requireRoom(): void {
    let used = 0;
    for (const [sequence, { length }] of this.#rows) if (sequence !== this.reservedSequence) used += length;
    if (used > this.#cells) throw new Violation('cells', `${used} rows in ${this.#cells} cells`);
  }
}

/** One value of each row. */
function hashesOf(hidden: HiddenState): number[] {
  assert(hidden instanceof Float32Array, 'toys speak float32');
  return [...hidden];
}

/** A grammar that no sampler takes. */
export const brokenGrammar = 'root ::= missing';

/** A grammar that some draws end in a dead end of. */
export const narrowGrammar = 'root ::= "narrow"';

export class ToySampler implements RequestSampler {
  readonly #sampling: Sampling;
  #heard = seedHash;

  /** @throws SAMPLER_GRAMMAR */
  constructor(sampling: Sampling) {
    if (sampling.grammar === brokenGrammar) throw new P4Error('SAMPLER_GRAMMAR', {});
    this.#sampling = sampling;
  }

  acceptPrompt(tokens: ArrayLike<number>): void {
    this.#hear(tokens, 0);
  }

  acceptEmitted(tokens: ArrayLike<number>): void {
    this.#hear(tokens, vocabularySize);
  }

  sample(logits: Float32Array, step: number): { kind: 'token'; token: TokenId } | { kind: 'grammar-dead-end' } {
    const draw = mixed(mixed(present(logits[0], 'a row has logits'), this.#heard), mixed(this.#sampling.seed, step));
    if (this.#sampling.grammar !== null && draw % 7 === 0) return { kind: 'grammar-dead-end' };
    const token = tokenId(draw % vocabularySize);
    this.acceptEmitted([token]);
    return { kind: 'token', token };
  }

  close(): void {
    // Nothing is held.
  }

  #hear(tokens: ArrayLike<number>, offset: number): void {
    for (let at = 0; at < tokens.length; at++) this.#heard = mixed(this.#heard, (tokens[at] ?? 0) + offset);
  }
}

/** What is drawn after `prompt`, all tokens of its session, from rings whose stages were never disturbed. */
export class ToyTwin {
  readonly #hashes: number[];
  readonly #sampler: ToySampler;
  #step = 0;

  constructor(stages: number, prompt: readonly number[], sampling: Sampling) {
    this.#hashes = Array.from({ length: stages }, () => seedHash);
    this.#sampler = new ToySampler(sampling);
    this.#sampler.acceptPrompt(prompt);
    for (const token of prompt) this.#feed(token);
  }

  /** The next token, `null` at a dead end. */
  draw(): TokenId | null {
    const drawn = this.#sampler.sample(
      Float32Array.of(present(this.#hashes.at(-1), 'a ring has stages')),
      this.#step++,
    );
    if (drawn.kind !== 'token') return null;
    this.#feed(drawn.token);
    return drawn.token;
  }

  #feed(token: number): void {
    let fed = token;
    this.#hashes.forEach((hash, stage) => {
      fed = mixed(hash, fed);
      this.#hashes[stage] = fed;
    });
  }
}

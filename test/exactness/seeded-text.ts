/**
 * Seeded text and the uncut model: what each step's logits are in either shape class, which token is drawn from them, and
 * which tokens could be drawn from logits that are a little different.
 */
import { assert, present } from '../../protocol/assert.ts';
import { defaultSampling, type Sampling } from '../../protocol/sampling.ts';
import { Candidates } from '../../stage/candidates.ts';
import { openSampler } from '../../stage/sampler.ts';
import { exactRows } from '../../stage/shape.ts';
import { logProbabilities, rangeOf } from './probability-comparison.ts';
import type { UncutModel } from './uncut-model.ts';

/** A prompt and the tokens that were drawn after it. */
export interface SeededText {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
}

/**
 * How rows are fed.
 * - `lone`: chunks of up to 63 rows, then one row a decode, as of a session that nobody disturbs in `decode: fast`.
 * - `paired`: a twin session beside it, row for row, so that no decode has a lone row: the shape class of `decode: exact`.
 * - `moved`: as `lone`, but another session has left cells in front, where the rows after the prompt come to lie; attention
 *   adds up cells in their order.
 */
export type Shape = 'lone' | 'paired' | 'moved';

/** The logits that each token of the text was drawn from. */
export function stepLogits(model: UncutModel, { prompt, tokens }: SeededText, shape: Shape): Float32Array[] {
  model.clear();
  if (shape === 'moved') decodeRows(model, { tokens: foreignRows, position: 0, sequence: foreign, outputs: 1 });
  let position = 0;
  const feed = (rows: readonly number[]): Float32Array => {
    const logits =
      shape === 'paired'
        ? decodeTwins(model, rows, position)
        : decodeRows(model, { tokens: rows, position, sequence: 0, outputs: 1 });
    position += rows.length;
    return logits;
  };
  let last = new Float32Array();
  for (const chunk of chunksOf(prompt, shape)) last = feed(chunk).slice();
  if (shape === 'moved') model.forget(foreign);
  return tokens.map((token, step) => {
    const logits = last;
    if (step < tokens.length - 1) last = feed([token]).slice();
    return logits;
  });
}

/** Chunks of a prompt; in pairs none of one row. */
function chunksOf(prompt: readonly number[], shape: Shape): (readonly number[])[] {
  const most = shape === 'paired' && prompt.length % exactRows.most === 1 ? exactRows.most - 1 : exactRows.most;
  return Array.from({ length: Math.ceil(prompt.length / most) }, (_, index) =>
    prompt.slice(index * most, (index + 1) * most),
  );
}

/** The session that leaves cells in front, and its rows: as many as a text has tokens. */
const foreign = 2;
const foreignRows = Array.from({ length: exactRows.most }, (_, index) => index);

interface Rows {
  readonly tokens: readonly number[];
  /** Of the first row. */
  readonly position: number;
  readonly sequence: number;
  /** How many of the last rows have logits: from there on they are all of a decode's rows. */
  readonly outputs: number;
}

function decodeRows(model: UncutModel, { tokens, position, sequence, outputs }: Rows): Float32Array {
  const { logits } = model.decode({
    tokens,
    positions: tokens.map((_, index) => position + index),
    sequences: tokens.map(() => sequence),
    outputs: tokens.map((_, index) => index >= tokens.length - outputs),
  });
  return present(logits.at(-1), 'the last row has logits');
}

/** A chunk of more rows is in its class by itself; one row goes together with its twin's. */
function decodeTwins(model: UncutModel, tokens: readonly number[], position: number): Float32Array {
  if (tokens.length > 1) {
    decodeRows(model, { tokens, position, sequence: 1, outputs: 2 });
    return decodeRows(model, { tokens, position, sequence: 0, outputs: 2 });
  }
  const [token] = tokens;
  assert(token !== undefined, 'there is a row');
  const { logits } = model.decode({
    tokens: [token, token],
    positions: [position, position],
    sequences: [0, 1],
    outputs: [true, true],
  });
  return present(logits[0], 'both rows have logits');
}

/** Draws tokens as the tail does, from any logits. */
export class Drawing {
  readonly #model: UncutModel;
  readonly #candidates: Candidates;

  constructor(model: UncutModel) {
    this.#model = model;
    this.#candidates = new Candidates(model.vocabulary.size);
  }

  draw(logits: Float32Array, sampling: Partial<Sampling>, step: number): number {
    const sampler = openSampler(this.#model.vocabulary, this.#candidates, { ...defaultSampling, ...sampling });
    try {
      const outcome = sampler.sample(logits, step);
      assert(outcome.kind === 'token', 'without a grammar a token is drawn');
      return outcome.token;
    } finally {
      sampler.close();
    }
  }

  /**
   * Tokens that are drawn at this step from logits that differ from these by at most `bound` each. The draw walks through
   * the candidates from the likeliest on, and stops where their sum passes a number that seed and step decide; so what
   * moves it most is all logits up to some candidate raised and the others lowered, or the other way round.
   */
  tokensWithin(logits: Float32Array, bound: number, draw: (logits: Float32Array) => number): Set<number> {
    const ranking = Array.from(logits.keys()).sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0));
    const found = new Set([draw(logits)]);
    for (const sign of [1, -1]) {
      const moved = logits.map((logit) => logit - sign * bound);
      for (const token of ranking.slice(0, mostCandidates)) {
        moved[token] = (logits[token] ?? 0) + sign * bound;
        found.add(draw(moved));
      }
    }
    return found;
  }

  free(): void {
    this.#candidates.free();
  }
}

/**
 * A prompt and a seed whose first token is drawn otherwise in the one shape class than in the other; such seeds are rare.
 * Prompts are stretches of 64 tokens of a text: 63 rows and a lone one, where nobody is beside.
 *
 * @param text token ids, the first of them the one that begins a sequence
 */
export function findFlip(model: UncutModel, text: readonly number[], seeds: number): Flip {
  const drawing = new Drawing(model);
  try {
    const prompts = Array.from({ length: text.length - 64 }, (_, from) => [
      ...text.slice(0, 1),
      ...text.slice(from + 1, from + 64),
    ]);
    for (const prompt of prompts) {
      const [lone, paired] = (['lone', 'paired'] as const).map((shape) =>
        present(stepLogits(model, { prompt, tokens: [0] }, shape)[0], 'one step'),
      );
      if (lone === undefined || paired === undefined || Math.max(...probabilitiesOf(lone)) > 0.3) continue;
      for (let seed = 0; seed < seeds; seed += 1) {
        const tokens = { lone: drawing.draw(lone, { seed }, 0), paired: drawing.draw(paired, { seed }, 0) };
        if (tokens.lone !== tokens.paired) return { prompt, seed, tokens };
      }
    }
  } finally {
    drawing.free();
  }
  throw new Error('no draw of this text depends on the shape');
}

const probabilitiesOf = (logits: Float32Array): Float64Array => logProbabilities(logits).map(Math.exp);

export interface Flip {
  readonly prompt: readonly number[];
  readonly seed: number;
  /** The first token in either class. */
  readonly tokens: Readonly<Record<'lone' | 'paired', number>>;
}

/** Candidates that are left after top-k by default, with room for those at its edge. */
const mostCandidates = 64;

/** The greatest difference of two rows of logits, as a part of the first one's range. */
export function relativeDifference(one: Float32Array, other: Float32Array): number {
  const worst = one.reduce((most, logit, token) => Math.max(most, Math.abs(logit - (other[token] ?? NaN))), 0);
  return worst / rangeOf(one);
}

/** For tests: engines on the committed stories model, whole or cut into a ring. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openModel } from '../model/model-file.ts';
import { hashModel } from '../model/model-hash.ts';
import { cutSlice } from '../model/slice-cutter.ts';
import { readSliceIdentity } from '../model/slice-identity.ts';
import { planSlice } from '../model/slice-plan.ts';
import { assert, present } from '../protocol/assert.ts';
import type { HiddenState } from '../protocol/hidden-state.ts';
import type { LayerRange } from '../protocol/plan.ts';
import { openEngine, type DecodeOutcome, type Engine, type EngineOptions } from './engine.ts';

export const storiesPath = join(import.meta.dirname, '..', '..', 'plans', 'stories.gguf');
export const storiesLayers = 8;

export const storiesOptions: EngineOptions = {
  path: storiesPath,
  layers: { first: 0, last: storiesLayers - 1 },
  modelLayers: storiesLayers,
  contextTokens: 768,
  sequences: 4,
  batchRows: 63,
  decode: 'fast',
  wire: 'f32',
  kv: { keys: 'f16', values: 'f16' },
  device: { kind: 'cpu' },
  threads: 1,
  poll: null,
  inputDivisor: 1,
  libraryFolder: null,
};

/** Rows of a test's decode: token, position, sequence. */
export type Row = readonly [token: number, position: number, sequence: number];

export function withEngine<Result>(options: Partial<EngineOptions>, use: (engine: Engine) => Result): Result {
  const engine = openEngine({ ...storiesOptions, ...options });
  try {
    return use(engine);
  } finally {
    engine.close();
  }
}

/** The logits of every row, copied. */
export function decodeRows(engine: Engine, rows: readonly Row[]): Float32Array[] {
  return logitsOf(decodeTokens(engine, rows));
}

export function decodeTokens(engine: Engine, rows: readonly Row[]): DecodeOutcome {
  return engine.decode({ ...places(rows), input: { kind: 'tokens', tokens: rows.map(([token]) => token) } });
}

export function logitsOf(outcome: DecodeOutcome): Float32Array[] {
  assert(outcome.kind === 'logits', `logits, not ${outcome.kind}`);
  return outcome.rows.map(({ logits }) => logits.slice());
}

/** One sequence's rows, from position `from`. */
export const sequenceRows = (tokens: ArrayLike<number>, sequence = 0, from = 0): Row[] =>
  Array.from(tokens, (token, index) => [token, from + index, sequence] as const);

/** A copy of a hidden state that came out as float32. */
export function floatsOf(hidden: HiddenState | null): Float32Array<ArrayBuffer> {
  assert(hidden instanceof Float32Array, 'a hidden state of float32');
  return Float32Array.from(hidden);
}

export function argmax(logits: Float32Array): number {
  return logits.reduce((best, logit, token) => (logit > (logits[best] ?? NaN) ? token : best), 0);
}

export function maxDifference(left: readonly Float32Array[], right: readonly Float32Array[]): number {
  assert(left.length === right.length, 'as many rows on both sides');
  return left.reduce((worst, row, index) => {
    const other = present(right[index], 'a row on each side');
    return row.reduce((most, value, at) => Math.max(most, Math.abs(value - (other[at] ?? NaN))), worst);
  }, 0);
}

/** A ring of engines over slices of a model; `decodeRows` sends rows all the way round. */
export interface EngineRing {
  readonly engines: readonly Engine[];
  decodeRows(rows: readonly Row[]): Float32Array[];
  close(): void;
}

/** @param cuts the first layer of each slice but the first */
export async function openRing(
  cuts: readonly number[],
  options: Partial<EngineOptions> & { readonly path: string },
): Promise<EngineRing> {
  const model = await openModel(options.path);
  const hash = await hashModel(model);
  const folder = mkdtempSync(join(tmpdir(), 'p4-engine-'));
  const engines: Engine[] = [];
  const close = (): void => {
    for (const engine of engines) engine.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const layers of ranges(cuts, model.layers)) {
      const plan = planSlice(model, hash, layers);
      const { path } = await cutSlice({ model, plan, folder });
      const { inputDivisor } = await readSliceIdentity(path);
      engines.push(
        openEngine({ ...storiesOptions, ...options, path, layers, modelLayers: model.layers, inputDivisor }),
      );
    }
  } catch (error) {
    close();
    throw error;
  }
  return { engines, close, decodeRows: (rows) => roundRing(engines, rows) };
}

function ranges(cuts: readonly number[], layers: number): LayerRange[] {
  const firsts = [0, ...cuts];
  return firsts.map((first, index) => ({ first, last: (firsts[index + 1] ?? layers) - 1 }));
}

function roundRing(engines: readonly Engine[], rows: readonly Row[]): Float32Array[] {
  const [head, ...others] = engines;
  let outcome = decodeTokens(present(head, 'a ring has a head'), rows);
  for (const engine of others) {
    assert(outcome.kind === 'hidden', `hidden state, not ${outcome.kind}`);
    outcome = engine.decode({ ...places(rows), input: { kind: 'hidden', parts: [outcome.hidden] } });
  }
  return logitsOf(outcome);
}

function places(rows: readonly Row[]) {
  return {
    rows: rows.length,
    positions: rows.map(([, position]) => position),
    sequences: rows.map(([, , sequence]) => sequence),
    outputs: rows.map(() => 1),
  };
}

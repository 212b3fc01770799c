/** Runs recordings of the uncut model through slices and rings of slices, and compares bit for bit. */
import { assert, present } from '../../protocol/assert.ts';
import type { LayerRange } from '../../protocol/plan.ts';
import type { DecodeInput, DecodeOutcome, Engine } from '../../stage/engine.ts';
import { floatsOf } from '../../stage/engine-fixture.ts';
import { BitComparison } from './bit-comparison.ts';
import type { RecordedDecode, Recording } from './recording.ts';

/** An engine that holds a slice of the model. */
export interface OpenSlice {
  readonly layers: LayerRange;
  readonly engine: Engine;
}

/**
 * Feeds a slice what the uncut model had before its first layer, and compares what comes out with what the uncut model had
 * after its last one: hidden state, or logits.
 */
export function replaySlice({ layers, engine }: OpenSlice, recordings: readonly Recording[]): BitComparison {
  const comparison = new BitComparison();
  for (const decode of recordings.flatMap(({ decodes }) => decodes)) {
    if (decode.isFirst) clear(engine);
    const input: DecodeInput =
      layers.first === 0
        ? { kind: 'tokens', tokens: decode.batch.tokens }
        : { kind: 'hidden', parts: [boundary(decode, layers.first - 1)] };
    compare(comparison, { outcome: run(engine, decode, input), decode, layers });
  }
  return comparison;
}

export interface RingComparison {
  /** The hidden state at every hop. */
  readonly hops: BitComparison;
  readonly logits: BitComparison;
}

/** Sends rows through all slices in turn, each fed with what the one before gave. */
export function replayRing(slices: readonly OpenSlice[], recordings: readonly Recording[]): RingComparison {
  const hops = new BitComparison();
  const logits = new BitComparison();
  for (const decode of recordings.flatMap(({ decodes }) => decodes)) {
    if (decode.isFirst) for (const { engine } of slices) clear(engine);
    let input: DecodeInput = { kind: 'tokens', tokens: decode.batch.tokens };
    for (const { layers, engine } of slices) {
      const outcome = run(engine, decode, input);
      compare(outcome.kind === 'hidden' ? hops : logits, { outcome, decode, layers });
      if (outcome.kind === 'hidden') input = { kind: 'hidden', parts: [outcome.hidden] };
    }
  }
  return { hops, logits };
}

/** Sends rows through all slices in turn; `heed` is told each row's logits, valid until it returns, and the uncut model's. */
export function replayLogits(
  slices: readonly OpenSlice[],
  recordings: readonly Recording[],
  heed: (found: Float32Array, expected: Float32Array) => void,
): void {
  for (const decode of recordings.flatMap(({ decodes }) => decodes)) {
    if (decode.isFirst) for (const { engine } of slices) clear(engine);
    let input: DecodeInput = { kind: 'tokens', tokens: decode.batch.tokens };
    for (const { engine } of slices) {
      const outcome = run(engine, decode, input);
      assert(outcome.kind !== 'kv-cache-full', 'the KV cache has room, as the uncut model has');
      if (outcome.kind === 'hidden') input = { kind: 'hidden', parts: [outcome.hidden] };
      else
        outcome.rows.forEach(({ logits }, at) => {
          heed(logits, present(decode.logits[at], 'logits on both sides'));
        });
    }
  }
}

function clear(engine: Engine): void {
  for (let sequence = 0; sequence < engine.reservedSequence; sequence += 1) engine.removeSequence(sequence);
}

function run(engine: Engine, { batch }: RecordedDecode, input: DecodeInput): DecodeOutcome {
  const { positions, sequences, outputs } = batch;
  return engine.decode({ rows: positions.length, input, positions, sequences, outputs: outputs.map(Number) });
}

const boundary = ({ hidden }: RecordedDecode, layer: number): Float32Array =>
  present(hidden[layer], 'the recording has every boundary');

interface Found {
  readonly outcome: DecodeOutcome;
  readonly decode: RecordedDecode;
  readonly layers: LayerRange;
}

function compare(comparison: BitComparison, { outcome, decode, layers }: Found): void {
  const rows = decode.batch.tokens.length;
  switch (outcome.kind) {
    case 'hidden':
      comparison.add(floatsOf(outcome.hidden), boundary(decode, layers.last), rows);
      return;
    case 'logits':
      assert(outcome.rows.length === decode.logits.length, 'as many rows have logits on both sides');
      outcome.rows.forEach(({ logits }, index) => {
        comparison.add(logits, present(decode.logits[index], 'logits on both sides'), 1);
      });
      return;
    case 'kv-cache-full':
      throw new Error('the KV cache of the slice is full where that of the uncut model is not');
  }
}

/**
 * A ring of slices against node-llama-cpp's public interface on the uncut model: greedy tokens and the probabilities of every
 * next token. The package shares no slicing, batching or sampling code with p4; it has the same libllama below.
 *
 * The bounds, and where they come from:
 * - With flash attention both sides compute in the same shapes (one chunk of at most 63 rows, then lone rows), so logits
 *   are the same and only the package's softmax in float32 is left: its probabilities were seen to sum to 1.3e-5 off 1.
 *   `sameShapes` bounds |ln p - ln q|.
 * - Without flash attention, the package's default, attention is another kernel that rounds otherwise: by up to 7.9e-3 of the
 *   logits' range, the greatest seen (in the 200 M model; 4.8e-3 in models of 128 elements a row). `otherAttention` is about
 *   twice that. Logits that differ by at most d each have ln p that differ by at most 2d: the softmax's sum moves by d too.
 * Where the greedy token differs, the two best logits must lie within 2d of each other.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { floatsOf } from '../../stage/engine-fixture.ts';
import { maxLogRatio, rangeOf, topMargin } from './probability-comparison.ts';
import { askPublicApi, type PublicApiStep } from './public-api.ts';
import { greedyToken } from './recording.ts';
import { legalRings, sampleRings, ringText } from './rings.ts';
import type { OpenSlice } from './replay.ts';
import { SliceShelf } from './slice-shelf.ts';
import { contextShape } from './subjects.ts';

/** Of |ln p - ln q|. */
export const sameShapes = 1e-4;
/** Of a logit, as a part of the range of its row. */
export const otherAttention = 1.6e-2;
/** Probabilities below it are left out: the package has them in float32. */
const leastProbability = 1e-7;

export interface Agreement {
  readonly name: string;
  /** The model that is cut. */
  readonly path: string;
  /** The file that node-llama-cpp loads: the same, or one with names for its tokens. */
  readonly publicPath: string;
  /** At most 63 token ids. */
  readonly prompt: readonly number[];
  /** Greedy tokens. */
  readonly steps: number;
  readonly stages: 2 | 3 | 4;
}

export async function assertAgrees(t: TestContext, agreement: Agreement): Promise<void> {
  const { name, publicPath, prompt } = agreement;
  const { logits, ring } = await ringLogits(agreement);
  const tokens = logits.map(greedyToken);
  const rows = [prompt, ...tokens.slice(0, -1).map((token) => [token])];
  const flashAttentions = [true, false] as const;
  const contextTokens = contextShape.contextTokens + 1;
  const runs = await askPublicApi({ path: publicPath, contextTokens, flashAttention: flashAttentions, rows });
  for (const [run, flashAttention] of flashAttentions.entries()) {
    const steps = present(runs[run], 'a run with each setting');
    assert.equal(steps.length, logits.length);
    const found = steps.map((step, index) => compared(step, present(logits[index], 'logits of each step')));
    const differing = found.filter(({ isSameToken }) => !isSameToken);
    const worst = Math.max(...found.map(({ logRatio }) => logRatio));
    const part = Math.max(...found.map(({ logRatio, range }) => logRatio / 2 / range));
    t.diagnostic(
      `${name}, ring ${ring}, flash attention ${flashAttention ? 'on' : 'off'}: ${String(steps.length)} steps, ` +
        `${String(differing.length)} other tokens, max |ln p - ln q| ${worst.toExponential(2)} ` +
        `(logits: ${part.toExponential(2)} of their range)`,
    );
    for (const [step, { isSameToken, logRatio, range, margin }] of found.entries()) {
      const bound = flashAttention ? sameShapes : 2 * otherAttention * range;
      assert.ok(logRatio <= bound, `step ${String(step)}: ${String(logRatio)} is within ${String(bound)}`);
      assert.ok(isSameToken || margin <= bound, `step ${String(step)}: another token at a margin of ${String(margin)}`);
    }
  }
}

function compared({ token, probabilities }: PublicApiStep, logits: Float32Array) {
  return {
    isSameToken: token === greedyToken(logits),
    logRatio: maxLogRatio(logits, probabilities, leastProbability),
    range: rangeOf(logits),
    margin: topMargin(logits),
  };
}

/** Logits of a greedy run through a ring of slices, of every step. */
async function ringLogits({
  path,
  prompt,
  steps,
  stages,
}: Agreement): Promise<{ logits: Float32Array[]; ring: string }> {
  const shelf = await SliceShelf.create(path, contextShape);
  try {
    const [cut] = sampleRings(legalRings(shelf.model, stages), 1, stages);
    const slices = await shelf.openRing(present(cut, 'the model has such a ring'));
    const logits: Float32Array[] = [];
    let rows = prompt;
    let position = 0;
    while (logits.length < steps) {
      const found = through(slices, rows, position);
      logits.push(found);
      position += rows.length;
      rows = [greedyToken(found)];
    }
    return { logits, ring: ringText(present(cut, 'the model has such a ring')) };
  } finally {
    await shelf.close();
  }
}

/** Rows of one session all the way round; the logits of the last. */
function through(slices: readonly OpenSlice[], tokens: readonly number[], position: number): Float32Array {
  const places = {
    rows: tokens.length,
    positions: tokens.map((_, index) => position + index),
    sequences: tokens.map(() => 0),
    outputs: tokens.map((_, index) => (index === tokens.length - 1 ? 1 : 0)),
  };
  let hidden = new Float32Array();
  for (const { layers, engine } of slices) {
    const input =
      layers.first === 0 ? ({ kind: 'tokens', tokens } as const) : ({ kind: 'hidden', parts: [hidden] } as const);
    const outcome = engine.decode({ ...places, input });
    assert.notEqual(outcome.kind, 'kv-cache-full');
    if (outcome.kind === 'hidden') hidden = floatsOf(outcome.hidden);
    if (outcome.kind === 'logits') return present(outcome.rows[0], 'the last row has logits').logits.slice();
  }
  throw new Error('the tail gives logits');
}

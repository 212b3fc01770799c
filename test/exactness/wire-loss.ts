/**
 * What `wire: f16` costs: the logits of rings whose hops are rounded to float16, against those of the uncut model fed the
 * same tokens. The same slices with `wire: f32` give the uncut model's bits (proof.ts), so all that is found is the rounding's.
 */
import { assert, present } from '../../protocol/assert.ts';
import { rangeOf } from './probability-comparison.ts';
import { recordTokens, greedyToken } from './recording.ts';
import { replayLogits } from './replay.ts';
import { finestRing, legalRings, type RingCut } from './rings.ts';
import { SliceShelf } from './slice-shelf.ts';
import { contextShape, sliceScripts, type Subject } from './subjects.ts';

export interface WireLoss {
  readonly subject: string;
  /** Each with as many stages as it says; the last is cut wherever a cut is legal. */
  readonly rings: readonly RingLoss[];
}

export interface RingLoss {
  readonly stages: number;
  /** Rows with logits. */
  readonly rows: number;
  /** Greatest difference of a logit, as a part of the range of its row. */
  readonly greatest: number;
  /** Rows whose likeliest token is another. */
  readonly otherTokens: number;
}

/** @param subject a model that has a cut */
export async function measureWireLoss(subject: Subject): Promise<WireLoss> {
  const shelf = await SliceShelf.create(subject.path, contextShape, 'f16');
  try {
    const recordings = recordTokens(subject.path, contextShape, sliceScripts(shelf.model));
    const rings: RingLoss[] = [];
    for (const cut of cutsOf(shelf)) {
      const loss = { stages: cut.length, rows: 0, greatest: 0, otherTokens: 0 };
      replayLogits(await shelf.openRing(cut), recordings, (found, expected) => {
        loss.rows += 1;
        loss.greatest = Math.max(loss.greatest, greatestDifference(found, expected) / rangeOf(expected));
        if (greedyToken(found) !== greedyToken(expected)) loss.otherTokens += 1;
      });
      rings.push(loss);
      await shelf.empty();
    }
    return { subject: subject.name, rings };
  } finally {
    await shelf.close();
  }
}

/** Two stages, cut in the middle; and as many as the model can be cut into. */
function cutsOf({ model }: SliceShelf): RingCut[] {
  const pairs = legalRings(model, 2);
  const middle = present(pairs[Math.floor(pairs.length / 2)], 'the model has a cut');
  return [middle, finestRing(model)];
}

export function wireLossLine({ subject, rings }: WireLoss): string {
  const parts = rings.map(
    ({ stages, rows, greatest, otherTokens }) =>
      `${String(stages)} stages: ${greatest.toExponential(1)} of the range, ${String(otherTokens)} of ${String(rows)} likeliest tokens differ`,
  );
  return `${subject}: ${parts.join('; ')}`;
}

function greatestDifference(found: Float32Array, expected: Float32Array): number {
  assert(found.length === expected.length, 'both sides have as many logits');
  let greatest = 0;
  for (let token = 0; token < found.length; token += 1) {
    const difference = Math.abs((found[token] ?? NaN) - (expected[token] ?? NaN));
    // What is no number is as far away as can be.
    greatest = Number.isNaN(difference) ? Infinity : Math.max(greatest, difference);
  }
  return greatest;
}

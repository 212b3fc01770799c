/**
 * X2, the bound in `decode: fast`: how far a logit may be from its undisturbed twin's, as a part of the range of its row.
 *
 * A lone row takes other kernels than two and more (stage/shape.ts), and rows that come to lie in front of earlier ones, in
 * cells that another session has left, are added up in another order (stage/cell-order.ts), in float16. How much either
 * changes depends on how weights are stored: where they have 8 bits or fewer, rows are rounded to 8 bits before every matrix,
 * and a change in the last digit moves some of them by a whole step. A bound is about twice the greatest that was seen.
 */
import { benchModelShape } from '../../model/random-model.ts';
import type { WeightType } from '../../model/random-weights.ts';
import { randomTokens } from './script.ts';
import { relativeDifference, stepLogits, type Shape } from './seeded-text.ts';
import { contextShape, makeRandomModel } from './subjects.ts';
import { UncutModel } from './uncut-model.ts';

/** Kinds of weights whose rounding is looked at. */
export const quantisations = ['F16', 'Q8_0', 'Q4_0'] as const satisfies readonly WeightType[];
export type Quantisation = (typeof quantisations)[number];

export const fastBounds: Readonly<Record<Quantisation, number>> = { F16: 6e-3, Q8_0: 4e-2, Q4_0: 4e-2 };

export interface FastDifferences {
  readonly weights: Quantisation;
  readonly layers: number;
  /** Steps of a text that were compared in either shape. */
  readonly steps: number;
  /** Greatest difference from lone rows, as a part of the logits' range. */
  readonly paired: number;
  readonly moved: number;
}

/** Tokens of the texts, and of the prompt before them: a chunk, and one more row. */
const promptTokens = 64;

/** Of a model of the benchmark's width, in the shapes in which neighbours may put rows. */
export async function fastDifferences(
  weights: Quantisation,
  { layers, steps }: Pick<FastDifferences, 'layers' | 'steps'>,
): Promise<FastDifferences> {
  const subject = await makeRandomModel(weights, { ...benchModelShape, layers, weightType: weights });
  try {
    const model = new UncutModel({ path: subject.path, ...contextShape, observes: false });
    try {
      const prompt = randomTokens(31, promptTokens, benchModelShape.vocabularySize);
      const tokens = randomTokens(32, steps, benchModelShape.vocabularySize);
      const lone = stepLogits(model, { prompt, tokens }, 'lone');
      const difference = (shape: Shape): number => {
        const other = stepLogits(model, { prompt, tokens }, shape);
        return Math.max(...lone.map((logits, step) => relativeDifference(logits, other[step] ?? new Float32Array())));
      };
      return { weights, layers, steps, paired: difference('paired'), moved: difference('moved') };
    } finally {
      model.close();
    }
  } finally {
    await subject.remove();
  }
}

export const isWithinBound = ({ weights, paired, moved }: FastDifferences): boolean =>
  Math.max(paired, moved) <= fastBounds[weights];

export const fastDifferencesLine = ({ weights, layers, steps, paired, moved }: FastDifferences): string =>
  `decode: fast, ${weights}, ${String(layers)} layers, ${String(steps)} steps: in pairs ${paired.toExponential(1)}, in ` +
  `other cells ${moved.toExponential(1)} of the logits' range (bound ${fastBounds[weights].toExponential(1)})`;

/** Holds the probabilities of one side against the logits of the other. */
import { present } from '../../protocol/assert.ts';

/** Largest and smallest logit apart: rounding is told as a part of it. */
export function rangeOf(logits: Float32Array): number {
  let least = Infinity;
  let most = -Infinity;
  for (const logit of logits) {
    if (logit < least) least = logit;
    if (logit > most) most = logit;
  }
  return most - least;
}

/** ln p of each token. */
export function logProbabilities(logits: Float32Array): Float64Array {
  let most = -Infinity;
  for (const logit of logits) if (logit > most) most = logit;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - most);
  const shift = most + Math.log(sum);
  return Float64Array.from(logits, (logit) => logit - shift);
}

/** How far the likeliest token is above the next one, in logits. */
export function topMargin(logits: Float32Array): number {
  let first = -Infinity;
  let second = -Infinity;
  for (const logit of logits) {
    if (logit > first) [first, second] = [logit, first];
    else if (logit > second) second = logit;
  }
  return first - second;
}

/**
 * The greatest |ln p - ln q| over the tokens.
 *
 * @param least tokens that both sides give less than this are left out: float32 has them as 0 or next to it
 */
export function maxLogRatio(logits: Float32Array, probabilities: readonly number[], least: number): number {
  const logs = logProbabilities(logits);
  let worst = 0;
  logs.forEach((log, token) => {
    const other = present(probabilities[token], 'each token has a probability');
    if (Math.exp(log) < least && other < least) return;
    worst = Math.max(worst, Math.abs(log - Math.log(other)));
  });
  return worst;
}

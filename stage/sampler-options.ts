/** Sampling options as this model's sampler can take them: the protocol's ranges, and what depends on the vocabulary. */
import { P4Error } from '../protocol/errors.ts';
import { parseSampling } from '../protocol/sampling-check.ts';
import type { Sampling } from '../protocol/sampling.ts';

/** Logits are divided by it: below, float32 overflows. */
const leastTemperature = 1e-6;
/** Far above any logit; with an infinite one a small vocabulary could be forbidden whole. */
const mostBias = 1e6;

/**
 * @param vocabularySize token ids are below it
 * @throws SAMPLING_INVALID naming the option, TOKEN_OUT_OF_RANGE for a logit bias
 */
export function samplerOptions(sampling: Sampling, vocabularySize: number): Sampling {
  const options = parseSampling(sampling);
  if (options.temperature > 0 && options.temperature < leastTemperature) {
    throw invalid('temperature', options.temperature, `0, or at least ${leastTemperature}`);
  }
  for (const [token, bias] of options.logitBias) {
    if (token >= vocabularySize) throw new P4Error('TOKEN_OUT_OF_RANGE', { token, vocabulary: vocabularySize });
    if (Math.abs(bias) > mostBias) throw invalid('logitBias', bias, `a number from -${mostBias} to ${mostBias}`);
  }
  return options;
}

function invalid(option: string, found: number, expected: string): P4Error {
  return new P4Error('SAMPLING_INVALID', { option, found: String(found), expected });
}

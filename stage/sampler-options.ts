/** Sampling options as this model's sampler can take them: in the protocol's ranges, with tokens of its vocabulary. */
import { P4Error } from '../protocol/errors.ts';
import { parseSampling } from '../protocol/sampling-check.ts';
import type { Sampling } from '../protocol/sampling.ts';

/**
 * @param vocabularySize token ids are below it
 * @throws SAMPLING_INVALID naming the option, TOKEN_OUT_OF_RANGE for a logit bias
 */
export function samplerOptions(sampling: Sampling, vocabularySize: number): Sampling {
  const options = parseSampling(sampling);
  for (const [token] of options.logitBias) {
    if (token >= vocabularySize) throw new P4Error('TOKEN_OUT_OF_RANGE', { token, vocabulary: vocabularySize });
  }
  return options;
}

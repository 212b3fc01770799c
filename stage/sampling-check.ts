/** Bounds of sampling options: outside them llama.cpp computes nonsense, or ends the process. */
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { Sampling } from '../protocol/sampling.ts';

interface Range {
  readonly least: number;
  readonly most: number;
}

type NumberOption = Exclude<keyof Sampling, 'logitBias' | 'grammar'>;

const share: Range = { least: 0, most: 1 };
const ranges: Readonly<Record<NumberOption, Range>> = {
  temperature: { least: 0, most: 1000 },
  topK: { least: 0, most: 2 ** 31 - 1 },
  topP: share,
  minP: share,
  repeatPenalty: { least: 0.01, most: 100 },
  repeatLastTokens: { least: 0, most: limits.contextTokens },
  frequencyPenalty: { least: -100, most: 100 },
  presencePenalty: { least: -100, most: 100 },
  seed: { least: 0, most: 2 ** 32 - 1 },
};
const wholeNumbers: ReadonlySet<NumberOption> = new Set(['topK', 'repeatLastTokens', 'seed']);

/** Logits are divided by it: below, float32 overflows. */
const leastTemperature = 1e-6;
const mostBias = 1e6;

/**
 * @param vocabularySize token ids are below it
 * @throws INVALID_ARGUMENT naming the option, TOKEN_OUT_OF_RANGE for a logit bias
 */
export function checkSampling(sampling: Sampling, vocabularySize: number): void {
  for (const [option, range] of Object.entries(ranges)) {
    if (isNumberOption(option)) checkNumber(option, sampling[option], range);
  }
  if (sampling.temperature > 0 && sampling.temperature < leastTemperature) {
    throw invalid('temperature', sampling.temperature, `0, or at least ${leastTemperature}`);
  }
  const { logitBias } = sampling;
  if (logitBias.length > limits.logitBiases) {
    throw invalid('logitBias', logitBias.length, `at most ${limits.logitBiases} tokens`);
  }
  for (const [token, bias] of logitBias) {
    const isToken = Number.isInteger(token) && token >= 0 && token < vocabularySize;
    if (!isToken) throw new P4Error('TOKEN_OUT_OF_RANGE', { token, vocabulary: vocabularySize });
    if (!(Math.abs(bias) <= mostBias)) throw invalid('logitBias', bias, `a number from -${mostBias} to ${mostBias}`);
  }
}

const isNumberOption = (option: string): option is NumberOption => Object.hasOwn(ranges, option);

function checkNumber(option: NumberOption, found: number, { least, most }: Range): void {
  const isWhole = wholeNumbers.has(option);
  const isSound = found >= least && found <= most && (!isWhole || Number.isInteger(found));
  if (!isSound) throw invalid(option, found, `${isWhole ? 'an integer' : 'a number'} from ${least} to ${most}`);
}

function invalid(what: string, found: number, expected: string): P4Error {
  return new P4Error('INVALID_ARGUMENT', { what, found: String(found), expected });
}

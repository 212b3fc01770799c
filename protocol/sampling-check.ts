/** Checks sampling options that came from outside; the ranges are those in which llama.cpp's samplers are defined. */
import { P4Error } from './errors.ts';
import { tokenId } from './ids.ts';
import { limits } from './limits.ts';
import { defaultSampling, type Sampling } from './sampling.ts';

type NumberOption = Exclude<keyof Sampling, 'logitBias' | 'grammar'>;

const ranges: Readonly<Record<NumberOption, { min: number; max: number; integer: boolean }>> = {
  temperature: { min: 0, max: 100, integer: false },
  topK: { min: 0, max: 0x7fff_ffff, integer: true },
  topP: { min: 0, max: 1, integer: false },
  minP: { min: 0, max: 1, integer: false },
  repeatPenalty: { min: 0.01, max: 100, integer: false },
  repeatLastTokens: { min: 0, max: limits.contextTokens, integer: true },
  frequencyPenalty: { min: -100, max: 100, integer: false },
  presencePenalty: { min: -100, max: 100, integer: false },
  seed: { min: 0, max: 0xffff_ffff, integer: true },
};

/** Logits are divided by the temperature: below this, float32 overflows. */
const leastTemperature = 1e-6;
/** Far above any logit; with an infinite one a small vocabulary could be forbidden whole. */
const mostBias = 1e6;

/**
 * Fills in the defaults and checks every option.
 * @throws SAMPLING_INVALID naming the option, what was found and what is expected
 */
export function parseSampling(value: unknown): Sampling {
  if (typeof value !== 'object' || value === null) throw refused('sampling', typeof value, 'an object');
  const options: Record<string, unknown> = { ...defaultSampling, ...value };
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(defaultSampling, name)) throw refused(name, 'an unknown option', Object.keys(ranges).join(', '));
  }
  return {
    temperature: temperature(options),
    topK: numberOption(options, 'topK'),
    topP: numberOption(options, 'topP'),
    minP: numberOption(options, 'minP'),
    repeatPenalty: numberOption(options, 'repeatPenalty'),
    repeatLastTokens: numberOption(options, 'repeatLastTokens'),
    frequencyPenalty: numberOption(options, 'frequencyPenalty'),
    presencePenalty: numberOption(options, 'presencePenalty'),
    seed: numberOption(options, 'seed'),
    logitBias: logitBias(options['logitBias']),
    grammar: grammar(options['grammar']),
  };
}

function numberOption(options: Record<string, unknown>, name: NumberOption): number {
  const { min, max, integer } = ranges[name];
  const value = options[name];
  const expected = `${integer ? 'a whole number' : 'a number'} from ${min} to ${max}`;
  if (typeof value !== 'number' || !(value >= min && value <= max)) throw refused(name, String(value), expected);
  if (integer && !Number.isInteger(value)) throw refused(name, String(value), expected);
  return value;
}

function temperature(options: Record<string, unknown>): number {
  const value = numberOption(options, 'temperature');
  if (value === 0 || value >= leastTemperature) return value;
  throw refused('temperature', String(value), `0, or at least ${leastTemperature}`);
}

function logitBias(value: unknown): Sampling['logitBias'] {
  const expected = `at most ${limits.logitBiases} pairs of a token id and a number from -${mostBias} to ${mostBias}`;
  if (!Array.isArray(value) || value.length > limits.logitBiases) throw refused('logitBias', typeof value, expected);
  return value.map((pair: unknown) => {
    if (!Array.isArray(pair) || pair.length !== 2) throw refused('logitBias', JSON.stringify(pair), expected);
    const [token, bias] = pair as [unknown, unknown];
    if (typeof token !== 'number' || typeof bias !== 'number' || !(Math.abs(bias) <= mostBias)) {
      throw refused('logitBias', JSON.stringify(pair), expected);
    }
    return [tokenId(token), bias];
  });
}

function grammar(value: unknown): string | null {
  if (value === null || value === '') return null;
  const expected = `GBNF text of at most ${limits.grammarBytes} bytes`;
  if (typeof value !== 'string') throw refused('grammar', typeof value, expected);
  if (Buffer.byteLength(value) > limits.grammarBytes) throw refused('grammar', `${value.length} characters`, expected);
  return value;
}

function refused(option: string, found: string, expected: string): P4Error {
  return new P4Error('SAMPLING_INVALID', { option, found, expected });
}

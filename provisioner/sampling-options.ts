/**
 * The options that say how the next token is chosen and when to stop, as commands take them.
 *
 * Texts become numbers here; ranges are checked once, by `parseSampling`, whose names become those of the flags again.
 */
import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';

import { Option, type Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { parseSampling } from '../protocol/sampling-check.ts';
import { defaultSampling, type Sampling } from '../protocol/sampling.ts';
import { wholeNumber } from './number-option.ts';

/** Options that are one number of `Sampling`, by their flags. */
const numberFlags = [
  ['temperature', 'temperature', '0 takes the likeliest token'],
  ['top-k', 'topK', 'draw from the K likeliest; 0: from all'],
  ['top-p', 'topP', 'draw from the likeliest with this probability together; 1: from all'],
  ['min-p', 'minP', 'leave out tokens less likely than this share of the likeliest; 0: none'],
  ['repeat-penalty', 'repeatPenalty', 'make tokens that came up less likely; 1: not'],
  ['repeat-last-n', 'repeatLastTokens', 'how many tokens the penalties look back at'],
  ['frequency-penalty', 'frequencyPenalty', 'subtracted for each time a token came up'],
  ['presence-penalty', 'presencePenalty', 'subtracted when a token came up'],
] as const;

/**
 * Stands for a bias of `-inf`: JSON has no infinity. The least that a tail takes, and enough that no draw finds the token:
 * logits differ by some tens.
 */
const neverBias = -1e6;

export interface SamplingChoice {
  readonly sampling: Sampling;
  readonly maxTokens: number | null;
  readonly stopStrings: readonly string[];
  readonly ignoreEnd: boolean;
}

/** Options as commander hands them over: texts where they take a value. */
export type OptionValues = Readonly<Record<string, unknown>>;

export function addSamplingOptions(command: Command): Command {
  for (const [flag, name, says] of numberFlags) {
    command.option(`--${flag} <number>`, `${says} (default: ${defaultSampling[name]})`);
  }
  return command
    .option('--logit-bias <id=value>', 'add to the logit of a token; -inf: never draw it (repeatable)', collected)
    .addOption(new Option('--grammar <text>', 'a GBNF grammar for the completion').conflicts('grammarFile'))
    .option('--grammar-file <file>', 'a file with a GBNF grammar')
    .option('--seed <number>', 'seed of the draws (default: random)')
    .option('--max-tokens <count>', 'tokens to answer with at most (default: until the context is full)')
    .option('--stop <text>', 'end where this text comes up (repeatable)', collected)
    .option('--ignore-end', 'go on after the model ends its text');
}

/** @throws SAMPLING_INVALID, INVALID_ARGUMENT */
export async function readSamplingOptions(values: OptionValues): Promise<SamplingChoice> {
  const numbers: Record<string, number> = {};
  for (const [flag, name] of numberFlags) {
    const text = values[camelCase(flag)];
    if (typeof text === 'string') numbers[name] = decimal(`--${flag}`, text);
  }
  const seed = values['seed'];
  const maxTokens = values['maxTokens'];
  return {
    sampling: checked({
      ...numbers,
      logitBias: texts(values['logitBias']).map(biasOf),
      grammar: await grammarOf(values),
      seed: typeof seed === 'string' ? decimal('--seed', seed) : randomInt(2 ** 32),
    }),
    maxTokens: typeof maxTokens === 'string' ? wholeNumber('--max-tokens', maxTokens, [1, limits.contextTokens]) : null,
    stopStrings: stopStringsOf(texts(values['stop'])),
    ignoreEnd: values['ignoreEnd'] === true,
  };
}

/** @throws SAMPLING_INVALID naming the flag */
function checked(options: Readonly<Record<string, unknown>>): Sampling {
  try {
    return parseSampling(options);
  } catch (error) {
    if (!(error instanceof P4Error) || error.code !== 'SAMPLING_INVALID') throw error;
    const { option } = error.facts;
    const [flag] = numberFlags.find(([, name]) => name === option) ?? [kebabCase(String(option))];
    throw new P4Error(error.code, { ...error.facts, option: `--${flag}` }, error);
  }
}

function stopStringsOf(stops: readonly string[]): readonly string[] {
  if (stops.length > limits.stopStrings) {
    throw refused('--stop', `${stops.length} texts`, `at most ${limits.stopStrings} of them`);
  }
  for (const stop of stops) {
    const bytes = Buffer.byteLength(stop);
    if (bytes === 0 || bytes > limits.stopStringBytes) {
      throw refused('--stop', `${bytes} bytes`, `a text of 1 to ${limits.stopStringBytes} bytes`);
    }
  }
  return stops;
}

/** `id=value` */
function biasOf(text: string): readonly [number, number] {
  const [, id, value] = /^(\d{1,10})=(.+)$/.exec(text) ?? [];
  if (id === undefined || value === undefined)
    throw refused('--logit-bias', text, 'id=value, as in 42=-1.5 or 42=-inf');
  return [Number(id), value === '-inf' ? neverBias : decimal('--logit-bias', value)];
}

async function grammarOf(values: OptionValues): Promise<string | null> {
  const { grammar, grammarFile } = values;
  if (typeof grammar === 'string') return grammar;
  if (typeof grammarFile !== 'string') return null;
  try {
    return await readFile(grammarFile, 'utf8');
  } catch (cause) {
    throw new P4Error(
      'INVALID_ARGUMENT',
      { option: '--grammar-file', found: grammarFile, reason: reasonOf(cause) },
      cause,
    );
  }
}

/** A number in plain or scientific notation; `Number` alone would take hexadecimal, white space and nothing at all. */
function decimal(option: string, text: string): number {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw refused(option, text, 'a number');
  return Number(text);
}

const collected = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];
const camelCase = (flag: string): string => flag.replace(/-([a-z])/g, (_match, letter: string) => letter.toUpperCase());
const kebabCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
const refused = (option: string, found: string, expected: string): P4Error =>
  new P4Error('SAMPLING_INVALID', { option, found, expected });

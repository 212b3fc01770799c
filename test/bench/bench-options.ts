/** What the benchmark is told on its command line. */
import type { Command } from 'commander';

import { limits } from '../../protocol/limits.ts';
import { P4Error } from '../../protocol/errors.ts';
import { wholeNumber } from '../../provisioner/number-option.ts';

export interface BenchOptions {
  readonly rounds: number;
  /** Tokens that each arm draws in a round. */
  readonly tokens: number;
  readonly promptTokens: number;
  /** Of the model; even, since two stages have half each. */
  readonly layers: number;
}

export interface OptionTexts {
  readonly rounds: string;
  readonly tokens: string;
  readonly prompt: string;
  readonly layers: string;
  readonly json?: boolean;
}

/** Most tokens that are drawn, and most of a prompt: the model's context holds them with room. */
const mostTokens = 1024;

export function addBenchOptions(program: Command): Command {
  return program
    .description('Measures a ring of two stages against the uncut model, in alternating rounds.')
    .option('--rounds <count>', 'rounds, each with every arm', '7')
    .option('--tokens <count>', `tokens that an arm draws in a round, 2 to ${mostTokens}`, '64')
    .option('--prompt <count>', `tokens of the prompt that is prefilled, 1 to ${mostTokens}`, '252')
    .option('--layers <count>', 'layers of the generated model, an even number', '16')
    .option('--json', 'print one JSON object and nothing else on standard output');
}

/** @throws INVALID_ARGUMENT */
export function benchOptions(texts: OptionTexts): BenchOptions {
  const layers = wholeNumber('--layers', texts.layers, [2, limits.modelLayers]);
  if (layers % 2 !== 0)
    throw new P4Error('INVALID_ARGUMENT', { option: '--layers', found: layers, expected: 'an even number' });
  return {
    rounds: wholeNumber('--rounds', texts.rounds, [1, 1000]),
    tokens: wholeNumber('--tokens', texts.tokens, [2, mostTokens]),
    promptTokens: wholeNumber('--prompt', texts.prompt, [1, mostTokens]),
    layers,
  };
}

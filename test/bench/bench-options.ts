/** What the benchmark is told on its command line. */
import type { Command } from 'commander';

import { limits } from '../../protocol/limits.ts';
import { P4Error } from '../../protocol/errors.ts';
import { wholeNumber } from '../../provisioner/number-option.ts';
import { fullShapes, type BenchShapes } from './bench-models.ts';
import { partNames, partsNamed, usualParts, type PartName } from './part.ts';

export interface BenchOptions {
  readonly rounds: number;
  /** Tokens that each arm draws in a round. */
  readonly tokens: number;
  readonly promptTokens: number;
  /** Of the model; even, since two stages have half each. */
  readonly layers: number;
}

/** How much the parts measure. */
export interface BenchSizes extends BenchOptions {
  /** Tokens after which the code of agents and stages is compiled: a ring that serves has them behind it in a minute. */
  readonly warmTokens: number;
  /** Tokens of a session that goes on with a second turn. */
  readonly turnTokens: number;
  /** How many sessions draw together; the first is one. */
  readonly sessions: readonly number[];
  /** Into how many stages the tiny model is cut; they divide its layers. */
  readonly stages: readonly number[];
  readonly shapes: BenchShapes;
  /** How often agents and stages are started anew, where a hundredth counts. */
  readonly starts: number;
  readonly decay: DecaySizes;
}

export interface DecaySizes {
  /** Answers in a run. */
  readonly requests: number;
  /** Long answers, and the tokens of each. */
  readonly longRuns: number;
  readonly longTokens: number;
}

export interface RingBenchOptions {
  readonly parts: readonly PartName[];
  readonly sizes: BenchSizes;
  /** A command of somebody else's that prints tokens per second. */
  readonly baseline: string | null;
}

export interface OptionTexts {
  readonly rounds: string;
  readonly tokens: string;
  readonly prompt: string;
  readonly layers: string;
  readonly only?: string;
  readonly decay?: boolean;
  readonly quick?: boolean;
  readonly baseline?: string;
  readonly json?: boolean;
}

/** Most tokens that are drawn, and most of a prompt: the model's context holds both with room. */
const mostTokens = 1024;

export function addBenchOptions(program: Command): Command {
  return program
    .description('Measures rings of stages against the uncut model and against themselves, in alternating rounds.')
    .option('--only <parts>', `of ${partNames.join(', ')}: those with commas between them`)
    .option('--decay', 'measures whether a ring grows slower as its journals grow instead: the part “decay”')
    .option('--quick', 'one short round of small models, to see that it runs; so with --journal')
    .option('--rounds <count>', 'rounds, each with every arm', '5')
    .option('--tokens <count>', `tokens that an arm draws in a round, 4 to ${mostTokens}`, '64')
    .option('--prompt <count>', `tokens of a long prompt, 1 to ${mostTokens}`, '1024')
    .option('--layers <count>', 'layers of the generated model, an even number', '16')
    .option(
      '--baseline <command>',
      'a command whose last number on standard output is tokens per second, to compare with',
    )
    .option('--json', 'print one JSON object and nothing else on standard output');
}

/** Enough to go through every line of code; tokens reach their reader in stretches of 30 ms, of which it takes some. */
const quick = { rounds: '1', tokens: '32', layers: '2', prompt: '130' };

/** @throws INVALID_ARGUMENT */
export function ringBenchOptions(given: OptionTexts): RingBenchOptions {
  const isQuick = given.quick === true;
  const options = benchOptions(isQuick ? { ...given, ...quick } : given);
  const { layers } = options;
  const { bench, large, tiny } = fullShapes;
  return {
    parts: partsOf(given),
    sizes: {
      ...options,
      warmTokens: isQuick ? 0 : 1600,
      turnTokens: isQuick ? 100 : 1000,
      sessions: isQuick ? [1, 2] : [1, 2, 4, 8],
      stages: isQuick ? [1, 2] : [1, 2, 4, 8, 16],
      starts: isQuick ? 1 : 3,
      decay: isQuick ? { requests: 2, longRuns: 1, longTokens: 16 } : { requests: 40, longRuns: 3, longTokens: 2048 },
      shapes: isQuick
        ? { bench: { ...tiny, layers }, large: { ...tiny, layers }, tiny: { ...tiny, layers } }
        : { bench: { ...bench, layers }, large, tiny },
    },
    baseline: given.baseline ?? null,
  };
}

/** @throws INVALID_ARGUMENT */
function partsOf({ only, decay }: OptionTexts): readonly PartName[] {
  if (only !== undefined) return partsNamed('--only', only);
  return decay === true ? ['decay'] : usualParts;
}

/** @throws INVALID_ARGUMENT */
export function benchOptions(texts: OptionTexts): BenchOptions {
  const layers = wholeNumber('--layers', texts.layers, [2, limits.modelLayers]);
  if (layers % 2 !== 0)
    throw new P4Error('INVALID_ARGUMENT', { option: '--layers', found: layers, expected: 'an even number' });
  return {
    rounds: wholeNumber('--rounds', texts.rounds, [1, 1000]),
    tokens: wholeNumber('--tokens', texts.tokens, [4, mostTokens]),
    promptTokens: wholeNumber('--prompt', texts.prompt, [1, mostTokens]),
    layers,
  };
}

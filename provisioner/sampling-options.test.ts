import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { defaultSampling } from '../protocol/sampling.ts';
import { addSamplingOptions, readSamplingOptions, type SamplingChoice } from './sampling-options.ts';

async function read(...args: readonly string[]): Promise<SamplingChoice> {
  const command = addSamplingOptions(new Command()).exitOverride();
  command.configureOutput({ writeErr: () => undefined });
  command.parse([...args], { from: 'user' });
  return readSamplingOptions(command.opts());
}

const refused = (args: readonly string[], code: string): Promise<void> => assert.rejects(read(...args), { code });

describe('sampling options', () => {
  test('are the defaults and a seed of its own where nothing is said', async () => {
    const [one, other] = [await read(), await read()];
    assert.deepEqual({ ...one.sampling, seed: 0 }, defaultSampling);
    assert.deepEqual([one.maxTokens, one.stopStrings, one.ignoreEnd], [null, [], false]);
    assert.notEqual(one.sampling.seed, other.sampling.seed);
  });

  test('are taken by their names', async () => {
    const { sampling, maxTokens, stopStrings, ignoreEnd } = await read(
      ...['--temperature', '0.5', '--top-k', '7', '--top-p', '.9', '--min-p', '1e-2', '--repeat-penalty', '1.1'],
      ...['--repeat-last-n', '32', '--frequency-penalty', '-0.5', '--presence-penalty', '0.25', '--seed', '4294967295'],
      ...['--logit-bias', '5=-inf', '--logit-bias', '6=1.5', '--grammar', 'root ::= "a"', '--max-tokens', '3'],
      ...['--stop', 'one', '--stop', 'two', '--ignore-end'],
    );
    assert.deepEqual(sampling, {
      temperature: 0.5,
      topK: 7,
      topP: 0.9,
      minP: 0.01,
      repeatPenalty: 1.1,
      repeatLastTokens: 32,
      frequencyPenalty: -0.5,
      presencePenalty: 0.25,
      logitBias: [
        [5, -1e6],
        [6, 1.5],
      ],
      grammar: 'root ::= "a"',
      seed: 4294967295,
    });
    assert.deepEqual([maxTokens, stopStrings, ignoreEnd], [3, ['one', 'two'], true]);
  });

  test('survive the JSON they travel as', async () => {
    const { sampling } = await read('--logit-bias', '5=-inf');
    assert.deepEqual(JSON.parse(JSON.stringify(sampling)), sampling);
  });

  test('are refused by the names of their flags', async () => {
    for (const [flag, wrong] of [
      ['--repeat-last-n', '-1'],
      ['--top-k', '1.5'],
      ['--seed', '-1'],
      ['--logit-bias', '5=1e9'],
      ['--grammar', 'x'.repeat(limits.grammarBytes + 1)],
    ] as const) {
      await assert.rejects(read(flag, wrong), (error) => error instanceof P4Error && error.facts['option'] === flag);
    }
  });

  test('are refused with what was found', async () => {
    for (const wrong of ['', 'warm', '0x10', '1,5', 'Infinity', 'NaN']) {
      await refused(['--temperature', wrong], 'SAMPLING_INVALID');
    }
    await refused(['--top-p', '1.5'], 'SAMPLING_INVALID');
    await refused(['--top-k', '1.5'], 'SAMPLING_INVALID');
    await refused(['--seed', '4294967296'], 'SAMPLING_INVALID');
    for (const wrong of ['5', 'x=1', '5=', '5=inf', '-1=2']) await refused(['--logit-bias', wrong], 'SAMPLING_INVALID');
    for (const wrong of ['0', '-1', '1.5', 'many']) await refused(['--max-tokens', wrong], 'INVALID_ARGUMENT');
    await refused(['--stop', ''], 'SAMPLING_INVALID');
    await refused(Array.from({ length: 17 }, () => ['--stop', 'x']).flat(), 'SAMPLING_INVALID');
    await refused(['--grammar-file', '/nonexistent/grammar'], 'INVALID_ARGUMENT');
    await refused(['--grammar', 'a', '--grammar-file', 'b'], 'commander.conflictingOption');
  });
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { Command } from 'commander';

import { P4Error } from '../../protocol/errors.ts';
import { addBenchOptions, ringBenchOptions, type OptionTexts, type RingBenchOptions } from './bench-options.ts';
import { partNames, usualParts } from './part.ts';

function read(...words: readonly string[]): RingBenchOptions {
  const command = addBenchOptions(new Command('bench')).exitOverride();
  return ringBenchOptions(command.parse(words, { from: 'user' }).opts<OptionTexts>());
}

suite('options of the benchmark', () => {
  test('choose all parts but the longest, those that are named, or the longest alone', () => {
    assert.deepEqual(read().parts, usualParts);
    assert.deepEqual(
      partNames.filter((name) => !usualParts.includes(name)),
      ['decay'],
    );
    assert.deepEqual(read('--decay').parts, ['decay']);
    // In the order of the table, each once.
    assert.deepEqual(read('--only', 'turns,single, turns').parts, ['single', 'turns']);
    assert.throws(() => read('--only', 'singel'), P4Error);
  });

  test('make it short for a look whether it runs', () => {
    const [full, quick] = [read('--rounds', '9').sizes, read('--rounds', '9', '--quick').sizes];
    assert.deepEqual([full.rounds, full.sessions.at(-1), full.stages.at(-1)], [9, 8, 16]);
    assert.deepEqual([quick.rounds, quick.sessions.at(-1), quick.stages.at(-1)], [1, 2, 2]);
  });

  test('that make no measurement are refused', () => {
    for (const words of [
      ['--layers', '3'],
      ['--rounds', '0'],
      ['--tokens', '3'],
      ['--prompt', '1e9'],
    ]) {
      assert.throws(
        () => read(...words),
        (error) => error instanceof P4Error && error.code === 'INVALID_ARGUMENT',
      );
    }
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { limits } from '../../protocol/limits.ts';
import type { StageLine } from './stage-launcher.ts';
import { StageWords } from './stage-words.ts';

function heard(...chunks: readonly string[]): {
  readonly lines: readonly StageLine[];
  readonly last: readonly string[];
} {
  const lines: StageLine[] = [];
  const words = new StageWords((line) => lines.push(line));
  for (const chunk of chunks) words.hear(chunk);
  words.end();
  return { lines, last: words.last };
}

test('lines are whole, however they arrive', () => {
  const { lines } = heard('{"event":"li', 'stening"}\nGGML_ASSERT', ' failed\n\nlast');
  assert.deepEqual(lines, [
    { kind: 'record', record: { event: 'listening' } },
    { kind: 'text', text: 'GGML_ASSERT failed' },
    { kind: 'text', text: 'last' },
  ]);
});

test('what only looks like a record is text', () => {
  assert.deepEqual(heard('{broken\n').lines, [{ kind: 'text', text: '{broken' }]);
});

test('the latest lines are kept, and no line is longer than the bound', () => {
  const { last } = heard(Array.from({ length: 30 }, (_none, line) => `${line}\n`).join(''));
  assert.deepEqual(
    last,
    Array.from({ length: 20 }, (_none, line) => String(line + 10)),
  );
  const [long] = heard('x'.repeat(3 * limits.stageLineCharacters), 'y\n').last;
  assert.equal(long?.length, limits.stageLineCharacters);
});

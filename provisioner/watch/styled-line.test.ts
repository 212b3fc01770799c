import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { renderedLine, span, wrapped } from './styled-line.ts';

describe('a line', () => {
  const line = [span('ring', 'strong'), span(' is '), span('ready', 'good')];

  test('is cut at the width, in the middle of a tone as well', () => {
    assert.equal(renderedLine(line, 80, false), 'ring is ready');
    assert.equal(renderedLine(line, 10, false), 'ring is re');
    assert.equal(renderedLine(line, 10, true), '\x1b[1mring\x1b[0m is \x1b[32mre\x1b[0m');
    assert.equal(renderedLine(line, 4, true), '\x1b[1mring\x1b[0m');
  });

  test('without colour has no escape in it, whatever an agent says', () => {
    assert.equal(renderedLine([span('a\x1b[2Jb\nc\u009bd', 'bad')], 80, false), 'a [2Jb c d');
  });
});

test('words are wrapped, and broken where they are longer than a line', () => {
  assert.deepEqual(wrapped('one two  three', 7), ['one two', 'three']);
  assert.deepEqual(wrapped('a abcdefgh bcd', 3), ['a', 'abc', 'def', 'gh', 'bcd']);
  assert.deepEqual(wrapped('', 5), []);
});

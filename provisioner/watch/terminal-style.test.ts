import assert from 'node:assert/strict';
import { test } from 'node:test';

import { plainMarks, unicodeMarks } from './styled-line.ts';
import { styleOf } from './terminal-style.ts';

const terminal = { isTTY: true, hasColors: () => true };

test('a terminal with UTF-8 has colours and more than ASCII', () => {
  const { style, canMove } = styleOf({ TERM: 'xterm', LANG: 'en_US.UTF-8' }, terminal);
  assert.deepEqual([style.colour, style.marks, canMove], [true, unicodeMarks, true]);
  assert.equal(styleOf({ LC_ALL: 'C', LANG: 'C.UTF-8' }, terminal).style.marks, plainMarks);
  assert.equal(styleOf({}, terminal).style.marks, plainMarks);
});

test('what is no terminal has no colours, and a dumb one neither colours nor drawings nor a cursor that moves', () => {
  assert.equal(styleOf({ LANG: 'C.UTF-8' }, { hasColors: () => true }).style.colour, false);
  const { style, canMove } = styleOf({ TERM: 'dumb', LANG: 'C.UTF-8' }, terminal);
  assert.deepEqual([style.colour, style.marks, canMove], [false, plainMarks, false]);
});

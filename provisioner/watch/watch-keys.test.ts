import assert from 'node:assert/strict';
import { test } from 'node:test';

import { afterKeys, type LiveState } from './watch-keys.ts';

const state: LiveState = { intervalSeconds: 2, isPaused: false, hasHelp: false, scroll: 0, isOver: false };

test('q, Ctrl-C and Ctrl-D end it; other keys do not', () => {
  for (const key of ['q', 'Q', '\u0003', '\u0004']) assert.equal(afterKeys(state, key, 0).isOver, true);
  assert.deepEqual(afterKeys(state, 'xyz\x1b[C\r\n', 0), state);
});

test('p and space pause and go on, ? helps', () => {
  assert.equal(afterKeys(state, 'p', 0).isPaused, true);
  assert.equal(afterKeys(state, 'p ', 0).isPaused, false);
  assert.equal(afterKeys(state, '?', 0).hasHelp, true);
});

test('+ and - go through intervals, from whichever one it is, and not beyond', () => {
  assert.equal(afterKeys(state, '+', 0).intervalSeconds, 5);
  assert.equal(afterKeys({ ...state, intervalSeconds: 7 }, '-', 0).intervalSeconds, 5);
  assert.equal(afterKeys(state, '-----', 0).intervalSeconds, 1);
  assert.equal(afterKeys(state, '++++++++++++', 0).intervalSeconds, 3600);
});

test('j, k and arrows move as far as there is something', () => {
  assert.equal(afterKeys(state, 'jj\x1b[B', 2).scroll, 2);
  assert.equal(afterKeys({ ...state, scroll: 2 }, '\x1b[Ak', 2).scroll, 0);
  assert.equal(afterKeys(state, 'k', 2).scroll, 0);
});

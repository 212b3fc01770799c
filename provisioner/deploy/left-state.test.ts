import assert from 'node:assert/strict';
import { test } from 'node:test';

import { leftState } from './left-state.ts';
import type { PhaseName } from './phase.ts';

const standing = (...phases: readonly PhaseName[]): ReadonlySet<PhaseName> => new Set(phases);

test('a run that ends early leaves each host in a state with a name', () => {
  assert.equal(leftState({ standing: standing(), end: null }), 'untouched');
  assert.equal(leftState({ standing: standing('release'), end: null }), 'prepared');
  assert.equal(leftState({ standing: standing('release', 'accounts'), end: null }), 'prepared');
  assert.equal(leftState({ standing: standing('accounts', 'files'), end: null }), 'switching');
  assert.equal(leftState({ standing: standing('services'), end: null }), 'switching');
  for (const end of ['answers', 'back', 'between', 'removed'] as const)
    assert.equal(leftState({ standing: standing('release', 'files'), end }), end);
});

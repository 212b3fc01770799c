import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { sharedTime, stageFigures, steadyRate } from './steady-state.ts';

/** Tokens every so many milliseconds. */
const every = (stepMs: number, { from, count }: { readonly from: number; readonly count: number }): number[] =>
  Array.from({ length: count }, (_, index) => from + index * stepMs);

suite('the rate of several sessions', () => {
  test('of one session is its own', () => {
    assert.equal(steadyRate([every(10, { from: 5, count: 11 })]), 100);
  });

  test('leaves out those who are not all there yet, or no longer', () => {
    // Alone a session draws every 5 ms, beside the other every 10 ms.
    const early = [...every(5, { from: 0, count: 20 }), ...every(10, { from: 100, count: 21 })];
    const late = [...every(10, { from: 104, count: 21 }), ...every(5, { from: 309, count: 20 })];
    const { fromMs, toMs } = sharedTime([early, late]);
    assert.deepEqual([fromMs, toMs], [104, 300]);
    assert.ok(Math.abs(steadyRate([early, late]) - 200) < 1e-9);
  });

  test('is that of their rows also where they come in bursts', () => {
    // Eight sessions, a token of each in every frame, a millisecond apart.
    const sessions = Array.from({ length: 8 }, (_, index) => every(50, { from: index, count: 12 }));
    assert.ok(Math.abs(steadyRate(sessions) - 160) < 1e-9);
  });

  test('is none where sessions never ran together', () => {
    assert.throws(
      () => steadyRate([every(10, { from: 0, count: 3 }), every(10, { from: 100, count: 3 })]),
      /while all run/,
    );
    assert.throws(() => steadyRate([[], [1, 2]]), /has drawn/);
  });
});

test('a stage has rows per decode and a share of the time', () => {
  const from = { decodes: 10, rows: 100, computeMs: 1000 };
  const to = { decodes: 60, rows: 250, computeMs: 1400 };
  assert.deepEqual(stageFigures(from, to, 500), { rowsPerDecode: 3, computeShare: 0.8 });
  assert.throws(() => stageFigures(from, from, 500), /has computed/);
});

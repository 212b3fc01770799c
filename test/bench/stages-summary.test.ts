import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { stagesLines, stagesVerdicts, summarizeStages } from './stages-summary.ts';

/** Rounds in which a step takes so many milliseconds. */
const measured = (stages: number, ...steps: number[]) => ({
  stages,
  runs: steps.map((ms) => ({ tokens: [], intervalsMs: [ms, ms], computeMs: [0.5, 0.5], cpuMs: [] })),
});

suite('more and more stages', () => {
  test('add the slope of a line to a step', () => {
    const figures = summarizeStages([1, 2, 4, 8].map((stages) => measured(stages, 2 + 0.25 * stages, 3 + stages)));
    assert.ok(Math.abs(figures.addedMs.least - 0.25) < 1e-9 && Math.abs(figures.addedMs.greatest - 1) < 1e-9);
    assert.ok(Math.abs(figures.fit.slope - 0.625) < 1e-9 && figures.fit.rSquared > 0.999);
    assert.deepEqual(
      stagesVerdicts(figures).map(({ isMet }) => isMet),
      [false, true],
    );
    assert.match(stagesLines(figures).at(-1) ?? '', /2\.50 ms and 0\.625 ms for each stage, r² 1\.000/);
  });

  test('that add more the more there are do not lie on it', () => {
    const figures = summarizeStages([1, 2, 4, 8, 16].map((stages) => measured(stages, stages * stages * 0.01)));
    assert.deepEqual(
      stagesVerdicts(figures).map(({ isMet }) => isMet),
      [true, false],
    );
  });
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { TogetherRun } from './ring-arm.ts';
import { sessionsLines, sessionsVerdicts, summarizeSessions } from './sessions-summary.ts';

const run = (tokensPerSecond: number, rowsPerDecode: number): TogetherRun => ({
  ...{ tokensPerSecond, agentCpuMs: 1 / rowsPerDecode },
  stages: [
    { rowsPerDecode, computeShare: 0.9 },
    { rowsPerDecode, computeShare: 0.8 },
  ],
});

/** In the second round the machine was half as fast. */
const measured = [
  { sessions: 1, runs: [run(100, 1), run(50, 1), run(100, 1)] },
  { sessions: 2, runs: [run(170, 1), run(90, 1), run(160, 1)] },
  { sessions: 8, runs: [run(230, 4), run(125, 4), run(250, 4)] },
];

suite('several sessions', () => {
  test('are compared with the one session of the same round', () => {
    const figures = summarizeSessions(measured);
    assert.deepEqual(
      figures.map(({ ratio: { least, median, greatest } }) => [least, median, greatest]),
      [
        [1, 1, 1],
        [1.6, 1.7, 1.8],
        [2.3, 2.5, 2.5],
      ],
    );
    assert.deepEqual(
      sessionsVerdicts(figures).map(({ target, isMet }) => [target?.is, target?.value, isMet]),
      [
        ['at least', 1.7, true],
        ['at least', 2.4, true],
        ['at most', 0.5, true],
      ],
    );
  });

  test('show how many rows went together, and how busy each stage was', () => {
    const lines = sessionsLines(summarizeSessions(measured));
    assert.match(lines[3] ?? '', /^ +8 .* 4\.00 4\.00 +90 % 80 %$/);
  });
});

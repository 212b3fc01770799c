import assert from 'node:assert/strict';
import { test } from 'node:test';

import { modesReport } from './modes-part.ts';
import type { TogetherRun } from './ring-arm.ts';

const run = (tokensPerSecond: number, rowsPerDecode: number): TogetherRun => ({
  ...{ tokensPerSecond, agentCpuMs: 1 },
  stages: [{ rowsPerDecode, computeShare: 0.75 }],
});

test('decode modes are compared within a round, for one session and for several', () => {
  const { verdicts, blocks } = modesReport([
    [run(100, 1), run(50, 1)],
    [run(60, 1), run(30, 1)],
    [run(200, 2), run(100, 2)],
    [run(190, 2), run(90, 2)],
  ]);
  assert.deepEqual(
    verdicts.map(({ figure, found, isMet }) => [figure, found.median, isMet]),
    [
      ['decode: exact / fast, 1 session', 0.6, null],
      ['decode: exact / fast, 4 sessions', (0.95 + 0.9) / 2, null],
    ],
  );
  assert.match(blocks.flat().join('\n'), /fast, 4 sessions .*150\.0 \(100\.0 to 200\.0\) +2\.00 +75 %/);
});

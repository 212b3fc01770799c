import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { turnsReport } from './turns-part.ts';

const round = (first: number, second: number, sameBeginning: { ms: number; reusedRows: number }) => ({
  first: { ms: first, reusedRows: 0 },
  second: { ms: second, reusedRows: 1003 },
  sameBeginning,
});

suite('turns', () => {
  test('are compared with the first turn of the same round', () => {
    const none = { ms: 4100, reusedRows: 0 };
    const { verdicts } = turnsReport([round(4000, 200, none), round(8000, 800, none), round(4000, 600, none)], 1000);
    assert.deepEqual(
      verdicts.map(({ found, isMet }) => [found.median, isMet]),
      [
        [0.1, true],
        [1.025, null],
      ],
    );
    assert.match(verdicts[1]?.figure ?? '', /no row reused/);
  });

  test('say how many rows a new session found there', () => {
    const { verdicts, blocks } = turnsReport([round(4000, 500, { ms: 300, reusedRows: 1000 })], 1000);
    assert.match(verdicts[1]?.figure ?? '', /1000 rows reused/);
    assert.equal(verdicts[0]?.isMet, false);
    assert.match(blocks.flat().join('\n'), /second turn, 16 more .* 1003 /);
  });
});

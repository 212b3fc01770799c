import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { prefillReport } from './prefill-part.ts';

const run = (ms: number, token: number) => ({ ms, token });

suite('a long prompt', () => {
  const uncut = [run(4000, 1), run(8000, 2), run(4000, 3)];
  const one = [run(2000, 1), run(5000, 2), run(2500, 3)];

  test('is compared within a round', () => {
    const { verdicts, figures } = prefillReport([uncut, one, one], 1000);
    assert.deepEqual(
      verdicts.map(({ found, target, isMet }) => [found.least, found.median, found.greatest, target?.value, isMet]),
      [
        [1.6, 1.6, 2, 1.8, false],
        [1, 1, 1, undefined, null],
      ],
    );
    assert.match(JSON.stringify(figures), /"name":"uncut, one process","tokensPerSecond":\{"median":250/);
  });

  test('is not compared where arms draw different tokens', () => {
    const other = [...one.slice(1), run(2000, 9)];
    assert.throws(() => prefillReport([uncut, one, other], 1000), /X1/);
  });
});

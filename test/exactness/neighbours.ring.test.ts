/** X2 beside random neighbours, in its short form; `npm run prove:neighbours` is the long one. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { suite, test, type TestContext } from 'node:test';

import { benchModelShape } from '../../model/random-model.ts';
import { firstDifference, neighbourLine, proveNeighbours } from './neighbour-proof.ts';
import { makeRandomModel, stories, type Subject } from './subjects.ts';

async function assertSame(t: TestContext, subject: Subject, runs: number): Promise<void> {
  const seed = randomInt(1_000_000);
  const report = await proveNeighbours(subject, { mode: 'exact', runs, tokens: 32, seed });
  t.diagnostic(`seed ${String(seed)}: ${neighbourLine(report)}`);
  assert.deepEqual(report.departures, []);
  assert.ok(report.neighbours.answered + report.neighbours.cancelled > 0, 'neighbours were there');
  assert.ok(report.rowsPerDecode > 1.2, `their rows met those of the question: ${String(report.rowsPerDecode)}`);
}

suite('decode: exact beside random neighbours', () => {
  test('gives the stories model’s texts as without them', (t) => assertSame(t, stories, 4));

  test('gives the texts of a model with the 200 M model’s width as without them', async (t) => {
    const wide = await makeRandomModel('4 layers of the 200 M model', { ...benchModelShape, layers: 4 });
    try {
      await assertSame(t, wide, 2);
    } finally {
      await wide.remove();
    }
  });

  test('texts differ from the first token on that is another, or missing', () => {
    assert.equal(firstDifference([1, 2, 3], [1, 2, 3]), null);
    assert.equal(firstDifference([1, 2, 3], [1, 4, 3]), 1);
    assert.equal(firstDifference([1, 2], [1, 2, 3]), 2);
  });
});

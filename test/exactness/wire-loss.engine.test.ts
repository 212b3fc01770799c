/**
 * What `wire: f16` costs, in short: a model of float16 weights, and models of 8 bits, in which the rows before every matrix
 * are rounded to 8 bits as well, so that a small change may become a whole step. `npm run prove:exactness -- --wire f16` does
 * every model; its figures stand in ARCHITECTURE.md.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { smallSubjects, stories } from './subjects.ts';
import { measureWireLoss, wireLossLine } from './wire-loss.ts';

/** The greatest that may be found, as a part of the logits' range: about twice what was. */
const bounds: Readonly<Record<string, number>> = { stories: 4e-3, 'gpt-oss-moe': 2e-2, 'qwen3moe-moe': 1.2e-2 };

test('logits of rings with float16 between their stages lie within the stated bounds', async (t) => {
  const subjects = [stories, ...(await smallSubjects())].filter(({ name }) => name in bounds);
  assert.equal(subjects.length, Object.keys(bounds).length);
  for (const subject of subjects) {
    const loss = await measureWireLoss(subject);
    t.diagnostic(wireLossLine(loss));
    const [two, finest] = loss.rings;
    assert.ok(two?.stages === 2 && finest !== undefined && finest.stages > 4);
    for (const { rows, greatest, stages } of loss.rings) {
      const bound = present(bounds[subject.name], 'the model has a bound');
      assert.ok(rows > 100 && greatest > 0 && greatest <= bound, `${String(stages)} stages: ${String(greatest)}`);
    }
  }
});

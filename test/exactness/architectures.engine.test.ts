/**
 * Every architecture that may be cut, against the first oracle: all slices, all rings of two stages and some of three and
 * four give what the uncut model gives, bit for bit. Why that is a proof stands in proof.ts; `npm run prove:exactness` does
 * every ring.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openModel } from '../../model/model-file.ts';
import { architectureKey } from '../../model/architecture.ts';
import { unsignedOf } from '../../model/gguf-value.ts';
import { slidingWindowKey, slidingWindowLayers } from '../../model/sliding-window.ts';
import { present } from '../../protocol/assert.ts';
import { plantFlags, replayPlanted } from './planted-change.ts';
import { prove, recordAll, reportLine } from './proof.ts';
import { shortScope } from './scopes.ts';
import { SliceShelf } from './slice-shelf.ts';
import { architecturesWithoutSubject, contextShape, sliceScripts, smallSubjects } from './subjects.ts';

const subjects = await smallSubjects();

test('there is a model of every architecture that may be cut', async () => {
  assert.deepEqual(await architecturesWithoutSubject(subjects), []);
});

for (const subject of subjects) {
  test(`${subject.name}: slices and rings compute what the uncut model does`, async (t) => {
    const report = await prove(subject, shortScope);
    t.diagnostic(reportLine(report));
    assert.deepEqual(report.faults, []);
    assert.ok(report.observedFound.isExact, `observing changes the model: ${report.observedFound.text}`);
    assert.ok(report.slices > 0 && report.slicesFound.isExact && report.ringsFound.isExact);
  });
}

test('a sliding window on the wrong layers is seen: prompts are longer than the window', async (t) => {
  let windowed = 0;
  for (const subject of subjects) {
    const model = await openModel(subject.path);
    if (slidingWindowLayers(model) === null) continue;
    windowed += 1;
    const window = present(
      unsignedOf(model.metadata.get(architectureKey(model, 'attention.sliding_window'))),
      'the window has a size',
    );
    const scripts = sliceScripts(model);
    assert.ok(scripts.some(({ prompts }) => prompts.some(({ length }) => length > window)));
    const shelf = await SliceShelf.create(subject.path, contextShape);
    try {
      const cut = [
        { first: 0, last: 4 },
        { first: 5, last: 8 },
        { first: 9, last: 11 },
      ];
      const recordings = recordAll(subject, scripts);
      const plant = (path: string, target: string): Promise<void> =>
        plantFlags(path, target, architectureKey(model, slidingWindowKey));
      const { hops, logits } = await replayPlanted(shelf, { cut, stage: 1, recordings, plant });
      t.diagnostic(`${subject.name}, window ${String(window)}: ${logits.text}`);
      assert.ok(!hops.isExact && !logits.isExact, `${subject.name}: ${hops.text}`);
    } finally {
      await shelf.close();
    }
  }
  assert.ok(windowed > 0, 'a model with a sliding window is among them');
});

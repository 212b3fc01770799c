/** A long run in its short form; `npm run prove:long` is the long one. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';

import { grown, longRunLines, runLong } from './long-run.ts';

test('two thousand tokens in many sessions leave memory flat, KV cells free and room in the journal', async (t) => {
  const seed = randomInt(1_000_000);
  t.diagnostic(`seed ${String(seed)}`);
  const report = await runLong({ tokens: 2000, seed });
  for (const line of longRunLines(report)) t.diagnostic(line);
  assert.ok(report.tokens >= 2000);
  assert.deepEqual(grown(report), []);
  assert.ok(report.journal.bytesAfter < report.journal.bytesBefore, 'the journal has made room');
});

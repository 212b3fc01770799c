import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import { limits } from '../../protocol/limits.ts';
import { openJournal } from './journal.ts';
import { loadAdmitted, requestAdmitted, tokenEmitted } from './sample-records.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const limitBytes = limits.journalLeastBytes;

test('J1: a file in the place of the folder, or of one above it, is said and left alone', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, 'mine');
  for (const folder of [file, join(file, 'journal')])
    await assert.rejects(openJournal({ folder, limitBytes }), { code: 'JOURNAL_UNWRITABLE' });
  assert.equal(readFileSync(file, 'utf8'), 'mine');
});

test('J3: a commit writes as much in a journal of a hundred thousand records as in an empty one', async (t) => {
  const written = await Promise.all([0, 100_000].map((records) => bytesWritten(t, records)));
  const [empty = 0, large = 0] = written;
  t.diagnostic(`bytes of the WAL after 300 commits: ${written.join(', ')}`);
  assert.ok(empty > 300 * 4096);
  assert.ok(large < empty * 1.02, `${large} and ${empty} bytes`);
});

/** Bytes that 300 commits of one token write, into a journal that has some records. */
async function bytesWritten(t: TestContext, records: number): Promise<number> {
  const folder = temporaryFolder(t);
  const filled = await openJournal({ folder, limitBytes });
  await filled.commit([loadAdmitted(), requestAdmitted()]);
  for (let index = 0; index < records; index += 10_000)
    await filled.commit(Array.from({ length: 10_000 }, (_, more) => tokenEmitted(index + more)));
  await filled.close();
  const journal = await openJournal({ folder, limitBytes, gatherMs: 0 });
  for (let index = 0; index < 300; index++) await journal.commit([tokenEmitted(records + index)]);
  const { size } = statSync(join(folder, 'journal.sqlite-wal'));
  await journal.close();
  return size;
}

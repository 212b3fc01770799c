import assert from 'node:assert/strict';
import { test } from 'node:test';

import { loadId, requestId, sessionId, type LoadId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord } from '../records.ts';
import { openJournal, type Journal } from './journal.ts';
import {
  loadAdmitted,
  requestAdmitted,
  requestEnded,
  requestSettled,
  sampleLoad,
  tokenEmitted,
} from './sample-records.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const limitBytes = limits.journalLeastBytes;
const other = loadId('f'.repeat(32));

async function recordsOf(journal: Journal, load: LoadId, request: number): Promise<JournalRecord[]> {
  const records: JournalRecord[] = [];
  for await (const record of journal.requestRecords(load, requestId(request))) records.push(record);
  return records;
}

/** Requests 1 to 4 side by side, of two loads; request 3 has not ended. */
function sideBySide(): {
  readonly all: JournalRecord[];
  readonly of: (load: LoadId, request: number) => JournalRecord[];
} {
  const all: JournalRecord[] = [loadAdmitted(), loadAdmitted(other)];
  const requests = [1, 2, 3, 4];
  for (const load of [sampleLoad, other]) for (const request of requests) all.push(requestAdmitted(request, { load }));
  for (let index = 0; index < 2000; index++)
    for (const load of [other, sampleLoad])
      for (const request of requests) all.push({ ...tokenEmitted(index, request), load });
  for (const load of [sampleLoad, other])
    for (const request of [4, 1, 2]) all.push({ ...requestEnded(request), load }, { ...requestSettled(request), load });
  return {
    all,
    of: (load, request) =>
      all.filter((record) => 'request' in record && record.load === load && record.request === request),
  };
}

test('the records of one request come in order, of loads that live and that ended, now and after a restart', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await openJournal({ folder, limitBytes });
  const { all, of } = sideBySide();
  await journal.commit(all);
  await journal.commit([{ kind: 'load-ended', load: other, by: 'forget' }]);
  const check = async (opened: Journal): Promise<void> => {
    for (const load of [sampleLoad, other])
      for (const request of [1, 2, 3, 4]) assert.deepEqual(await recordsOf(opened, load, request), of(load, request));
  };
  await check(journal);
  await journal.close();
  const next = await openJournal({ folder, limitBytes });
  await check(next);
  await next.close();
});

test('a request that the journal never heard of has no records; nor has one of such a load', async (t) => {
  const journal = await openJournal({ folder: temporaryFolder(t), limitBytes });
  await journal.commit([loadAdmitted(), requestAdmitted(1)]);
  assert.deepEqual(await recordsOf(journal, sampleLoad, 2), []);
  assert.deepEqual(await recordsOf(journal, other, 1), []);
  assert.equal(journal.highestIds(other), null);
  assert.deepEqual(journal.highestIds(sampleLoad), { session: 1, request: 1 });
  await journal.close();
});

test('commits go on while a request is read, and the reading begins at its admission', async (t) => {
  const journal = await openJournal({ folder: temporaryFolder(t), limitBytes });
  const before = Array.from({ length: 60_000 }, (_, index) => tokenEmitted(index, 1));
  await journal.commit([loadAdmitted(), requestAdmitted(1)]);
  await journal.commit(before);
  const tokens = Array.from({ length: 3 * limits.journalPageRecords }, (_, index) => tokenEmitted(index, 2));
  await journal.commit([requestAdmitted(2), ...tokens]);
  const commits: Promise<void>[] = [];
  let count = 0;
  for await (const record of journal.requestRecords(sampleLoad, requestId(2))) {
    count += 1;
    if (record.kind === 'token-emitted' && record.index % 100 === 0) {
      const { transactions } = journal.stats();
      await journal.commit([{ ...tokenEmitted(tokens.length + commits.length, 2), session: sessionId(1) }]);
      commits.push(Promise.resolve());
      assert.equal(journal.stats().transactions, transactions + 1, 'a commit ends between two records');
    }
  }
  assert.equal(count, tokens.length + 1, 'what was committed meanwhile is not among them');
  await journal.close();
});

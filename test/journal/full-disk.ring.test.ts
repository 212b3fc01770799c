import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord } from '../../agent/records.ts';
import { openJournal, type Journal } from '../../agent/journal/journal.ts';
import { loadAdmitted, requestAdmitted, sessionRecords, tokenEmitted } from '../../agent/journal/sample-records.ts';
import { mountedFolder } from '../fixture/temporary-folder.ts';

const limitBytes = limits.journalLeastBytes;

async function replayed(journal: Journal): Promise<JournalRecord[]> {
  const records: JournalRecord[] = [];
  for await (const record of journal.replay()) records.push(record);
  return records;
}

const refusal =
  (code: string) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof P4Error, String(error));
    assert.equal(error.code, code);
    return true;
  };

test('J1: a read-only file system is refused, with and without a journal on it', async (t) => {
  const empty = mountedFolder(t, 'ro,size=4m');
  await assert.rejects(openJournal({ folder: empty, limitBytes }), refusal('JOURNAL_UNWRITABLE'));
  await assert.rejects(openJournal({ folder: join(empty, 'journal'), limitBytes }), refusal('JOURNAL_UNWRITABLE'));

  const folder = mountedFolder(t, 'size=4m');
  const journal = await openJournal({ folder, limitBytes });
  await journal.commit([loadAdmitted()]);
  await journal.close();
  execFileSync('mount', ['-o', 'remount,ro', folder]);
  await assert.rejects(openJournal({ folder, limitBytes }), refusal('JOURNAL_UNWRITABLE'));
});

test('J1: a disk without space for the first commit is refused', async (t) => {
  const folder = mountedFolder(t, 'size=64k');
  writeFileSync(join(folder, 'ballast'), Buffer.alloc(56 * 1024));
  await assert.rejects(openJournal({ folder, limitBytes }), refusal('JOURNAL_UNWRITABLE'));
});

test('a disk that fills up: commits fail, nothing more is taken, and with space again it goes on', async (t) => {
  const folder = mountedFolder(t, 'size=6m');
  const ballast = join(folder, 'ballast');
  writeFileSync(ballast, Buffer.alloc(3 * 1024 * 1024));
  const journal = await openJournal({ folder, limitBytes });
  const acknowledged: JournalRecord[] = [];
  const commit = async (record: JournalRecord): Promise<void> => {
    await journal.commit([record]);
    acknowledged.push(record);
  };
  await commit(loadAdmitted());
  const prompt = Array.from({ length: 10_000 }, (_, index) => tokenEmitted(index).token);
  const filling = async (): Promise<void> => {
    for (let request = 1; request < 1000; request++) await commit(requestAdmitted(request, { prompt }));
  };
  await assert.rejects(filling(), refusal('JOURNAL_WRITE_FAILED'));
  assert.ok(acknowledged.length > 10);

  assert.equal(journal.stats().state, 'failed');
  await assert.rejects(journal.commit([tokenEmitted(0)]), refusal('JOURNAL_WRITE_FAILED'));
  const answer = journal.admission(requestAdmitted());
  assert.equal(answer.kind, 'refused');
  await assert.rejects(journal.reopen(), refusal('JOURNAL_UNWRITABLE'), 'there is no space yet');
  assert.equal(journal.stats().state, 'failed');

  rmSync(ballast);
  await journal.reopen();
  assert.equal(journal.stats().state, 'open');
  assert.deepEqual(await replayed(journal), acknowledged);
  await commit(tokenEmitted(0));
  await journal.close();
  const next = await openJournal({ folder, limitBytes });
  assert.deepEqual(await replayed(next), acknowledged);
  await next.close();
});

test('commits that wait behind a failed one fail with it, and a failed journal closes', async (t) => {
  const folder = mountedFolder(t, 'size=2m');
  const journal = await openJournal({ folder, limitBytes });
  await journal.commit([loadAdmitted()]);
  const prompt = Array.from({ length: 500_000 }, (_, index) => tokenEmitted(index).token);
  const large = journal.commit([requestAdmitted(1, { prompt })]);
  await Promise.resolve();
  const outcomes = await Promise.allSettled([large, journal.commit([tokenEmitted(0)]), journal.commit([])]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  );
  await journal.close();
  assert.equal(journal.stats().state, 'closed');
  const next = await openJournal({ folder, limitBytes });
  assert.deepEqual(await replayed(next), [loadAdmitted()]);
  await next.close();
});

test('a disk that fills up while it compacts: nothing is lost, and with space again it ends', async (t) => {
  const folder = mountedFolder(t, 'size=12m');
  const ballast = join(folder, 'ballast');
  let now = 1_700_000_000_000;
  const journal = await openJournal({ folder, limitBytes, now: () => now });
  await journal.commit([loadAdmitted()]);
  const prompt = Array.from({ length: 1000 }, (_, index) => tokenEmitted(index).token);
  for (let session = 1; session <= 200; session++)
    await journal.commit(
      sessionRecords(session).map((record) => (record.kind === 'request-admitted' ? { ...record, prompt } : record)),
    );
  now += 86_400_000;
  const running = sessionRecords(201).slice(0, 10);
  await journal.commit(running);
  writeFileSync(ballast, Buffer.alloc(1024));
  // Every block that is free, to the last.
  execFileSync('sh', ['-c', `dd if=/dev/zero of=${ballast} bs=4096 2>/dev/null || true`]);
  await journal.compact();
  assert.equal(journal.stats().state, 'failed');
  await assert.rejects(journal.commit([tokenEmitted(99)]), refusal('JOURNAL_WRITE_FAILED'));
  rmSync(ballast);
  await journal.reopen();
  await journal.compact();
  assert.deepEqual(await replayed(journal), [loadAdmitted(), ...running]);
  assert.equal(
    journal.stats().records,
    1 + running.length + 2 * 200,
    'and of each of the others its end and settlement',
  );
  await journal.close();
  const next = await openJournal({ folder, limitBytes, now: () => now });
  assert.deepEqual(await replayed(next), [loadAdmitted(), ...running]);
  await next.close();
});

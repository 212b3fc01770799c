import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord } from '../records.ts';
import { diskError, failpointOf, noFailpoint, type Failpoint, type JournalPoint } from './failpoint.ts';
import { openJournal, type Journal } from './journal.ts';
import { clockOf, loadAdmitted, requestAdmitted, sessionRecords, tokenEmitted } from './sample-records.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const limitBytes = limits.journalLeastBytes;

/** A disk that a test can break at a point. */
class Disk {
  broken: JournalPoint | null = null;
  readonly failpoint: Failpoint = (point) => {
    if (point === this.broken) throw diskError('EIO');
  };
}

async function replayed(journal: Journal): Promise<JournalRecord[]> {
  const records: JournalRecord[] = [];
  for await (const record of journal.replay()) records.push(record);
  return records;
}

test('nothing is armed without the variable; one that names no point is refused', () => {
  assert.equal(failpointOf({}), noFailpoint);
  for (const text of [
    '',
    'append.before',
    'nowhere:kill',
    'append.before:explode',
    'append.before:kill:0',
    'mark.after:EIO,',
  ])
    assert.throws(() => failpointOf({ P4_JOURNAL_FAIL: text }), { code: 'INVALID_ARGUMENT' }, text);
});

test('an armed error comes at the n-th passing, once or from then on', () => {
  const codes = (text: string): string[] => {
    const failpoint = failpointOf({ P4_JOURNAL_FAIL: text });
    return Array.from({ length: 4 }, () => {
      try {
        failpoint('mark.before');
        failpoint('append.before');
        return '';
      } catch (error) {
        return error instanceof Error && 'code' in error ? String(error.code) : 'other';
      }
    });
  };
  assert.deepEqual(codes('append.before:EIO:2'), ['', 'SQLITE_IOERR', '', '']);
  assert.deepEqual(codes('append.before:ENOSPC:3+'), ['', '', 'SQLITE_FULL', 'SQLITE_FULL']);
  const several = 'append.before:EIO:2,append.before:ENOSPC:3,mark.before:EIO:4';
  assert.deepEqual(codes(several), ['', 'SQLITE_IOERR', 'SQLITE_FULL', 'SQLITE_IOERR'], 'each counts for itself');
});

test('J2, J8: an error of the disk at any point of a commit fails it and all behind it; with the disk back, all can be committed again', async (t) => {
  for (const point of ['append.before', 'append.after', 'mark.before', 'mark.after'] as const) {
    const disk = new Disk();
    const folder = temporaryFolder(t);
    const journal = await openJournal({ folder, limitBytes, failpoint: disk.failpoint });
    const first = [loadAdmitted(), requestAdmitted(1), tokenEmitted(0)];
    await journal.commit(first);
    disk.broken = point;
    const lost: JournalRecord[] = [tokenEmitted(1), tokenEmitted(2)];
    const outcomes = await Promise.allSettled([journal.commit([tokenEmitted(1)]), journal.commit([tokenEmitted(2)])]);
    await assert.rejects(journal.commit([tokenEmitted(3)]), { code: 'JOURNAL_WRITE_FAILED' });
    // A mark that cannot be written fails what comes next: its own batch is durable.
    const isDurable = point.startsWith('mark');
    for (const { status } of outcomes) assert.equal(status, isDurable ? 'fulfilled' : 'rejected', point);
    assert.equal(journal.stats().state, 'failed');
    assert.equal(journal.admission(requestAdmitted(2)).kind, 'refused');
    await assert.rejects(replayed(journal), { code: 'JOURNAL_WRITE_FAILED' });
    await journal.compact(); // Nothing is done, and nothing breaks.

    disk.broken = 'prove.before';
    await assert.rejects(journal.reopen(), (error) => error instanceof P4Error && error.code === 'JOURNAL_UNWRITABLE');
    assert.equal(journal.stats().state, 'failed');
    disk.broken = null;
    await journal.reopen();
    assert.deepEqual(
      await replayed(journal),
      isDurable ? [...first, ...lost] : first,
      `${point}: what was acknowledged`,
    );
    if (!isDurable) await journal.commit(lost);
    await journal.commit([tokenEmitted(3)]);
    await journal.close();
    const next = await openJournal({ folder, limitBytes });
    assert.deepEqual(await replayed(next), [...first, ...lost, tokenEmitted(3)], point);
    await next.close();
  }
});

test('an error of the disk while it compacts fails the journal; opened again it goes on where it was', async (t) => {
  for (const point of ['remove.before', 'remove.after'] as const) {
    const disk = new Disk();
    let now = clockOf(1);
    const journal = await openJournal({
      ...{ folder: temporaryFolder(t), limitBytes, failpoint: disk.failpoint },
      now: () => now,
    });
    await journal.commit([loadAdmitted(), ...sessionRecords(1)]);
    now = clockOf(4);
    await journal.commit(sessionRecords(4));
    disk.broken = point;
    const failures: string[] = [];
    journal.whenFailed(({ code }) => failures.push(code));
    await journal.compact();
    assert.equal(journal.stats().state, 'failed');
    await new Promise(setImmediate);
    assert.deepEqual(failures, ['JOURNAL_WRITE_FAILED'], 'told, although no commit waits');
    disk.broken = null;
    await journal.reopen();
    await journal.compact();
    assert.deepEqual(await replayed(journal), [loadAdmitted(), ...sessionRecords(4)]);
    assert.equal(journal.stats().records, 1 + 2 + sessionRecords(4).length, 'and the end and settlement of the first');
    await journal.close();
  }
});

test('an error of the disk at a checkpoint is no loss: what was acknowledged is there again', async (t) => {
  const disk = new Disk();
  const journal = await openJournal({ folder: temporaryFolder(t), limitBytes, failpoint: disk.failpoint });
  await journal.commit([loadAdmitted()]);
  disk.broken = 'checkpoint.after';
  const prompt = Array.from({ length: 50_000 }, (_, index) => tokenEmitted(index).token);
  const acknowledged: JournalRecord[] = [loadAdmitted()];
  for (let request = 1; journal.stats().state === 'open'; request++) {
    const record = requestAdmitted(request, { prompt });
    await journal.commit([record]).then(
      () => acknowledged.push(record),
      () => undefined,
    );
    await new Promise(setImmediate);
  }
  disk.broken = null;
  await journal.reopen();
  assert.deepEqual(await replayed(journal), acknowledged);
  await journal.close();
});

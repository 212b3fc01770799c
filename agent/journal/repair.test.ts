import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import { requestId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { HeadRecall, type HeadMemory } from '../head/memory.ts';
import type { JournalRecord } from '../records.ts';
import { Connection } from './connection.ts';
import { inspectJournal } from './inspection.ts';
import { openJournal, type Journal } from './journal.ts';
import { repairJournal, type RepairOutcome } from './repair.ts';
import { loadAdmitted, requestAdmitted, sampleLoad, sessionRecords, tokenEmitted } from './sample-records.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const limitBytes = limits.journalLeastBytes;
const now = (): number => 1_700_000_000_000;
const databasePath = (folder: string): string => join(folder, 'journal.sqlite');

async function listed(records: AsyncIterable<JournalRecord>): Promise<JournalRecord[]> {
  const list: JournalRecord[] = [];
  for await (const record of records) list.push(record);
  return list;
}

/** Sessions 1 to 40, each with a request and closed, and 41, which is open and whose request runs. */
const running = sessionRecords(41).slice(0, 12);
const history: readonly JournalRecord[] = [
  loadAdmitted(),
  ...Array.from({ length: 40 }, (_, index) => sessionRecords(index + 1)).flat(),
  ...running,
];
const sessionLength = sessionRecords(1).length;
/** Number of the record at a place of the session's records. */
const numberOf = (session: number, place: number): number => 2 + (session - 1) * sessionLength + place;

async function written(t: TestContext): Promise<string> {
  const folder = join(temporaryFolder(t), 'journal');
  const journal = await openJournal({ folder, limitBytes, now });
  await journal.commit(history);
  await journal.close();
  return folder;
}

async function damaged(t: TestContext, sql: string): Promise<string> {
  const folder = await written(t);
  const connection = await Connection.open(databasePath(folder));
  await connection.exec(sql);
  await connection.close();
  await assert.rejects(openJournal({ folder, limitBytes }), { code: 'JOURNAL_CORRUPT' });
  return folder;
}

async function repaired(folder: string): Promise<Extract<RepairOutcome, { kind: 'repaired' }>> {
  const outcome = await repairJournal({ folder, limitBytes, now });
  assert.equal(outcome.kind, 'repaired');
  return outcome;
}

async function opened<Value>(folder: string, use: (journal: Journal) => Promise<Value>): Promise<Value> {
  const journal = await openJournal({ folder, limitBytes, now });
  try {
    return await use(journal);
  } finally {
    await journal.close();
  }
}

/** What an agent that starts with it knows. */
async function recalled(journal: Journal): Promise<HeadMemory> {
  const recall = new HeadRecall({ session: 0, request: 0 });
  for (const record of await listed(journal.replay())) recall.add(record);
  return recall.memory;
}

const textOf = (journal: Journal, request: number): Promise<JournalRecord[]> =>
  listed(journal.requestRecords(sampleLoad, requestId(request)));

test('a whole journal is whole: nothing in it is changed, and a repair has nothing to do', async (t) => {
  const folder = await written(t);
  const before = readFileSync(databasePath(folder));
  const { records, lost, faults, lastRecord } = await inspectJournal(folder);
  assert.deepEqual({ records, lost, faults }, { records: history.length, lost: [], faults: [] });
  assert.equal(lastRecord, history.length);
  assert.equal((await repairJournal({ folder, limitBytes, now })).kind, 'whole');
  assert.deepEqual(readFileSync(databasePath(folder)), before);
  await opened(folder, async (journal) => {
    assert.deepEqual(await listed(journal.replay()), history);
  });
});

test('a folder without a journal is said to have none; one that is held is left alone', async (t) => {
  await assert.rejects(inspectJournal(temporaryFolder(t)), { code: 'JOURNAL_MISSING' });
  const folder = await written(t);
  const journal = await openJournal({ folder, limitBytes });
  await assert.rejects(inspectJournal(folder), { code: 'JOURNAL_LOCKED' });
  await assert.rejects(repairJournal({ folder, limitBytes, now }), { code: 'JOURNAL_LOCKED' });
  await journal.close();
});

test('J6: a damaged record is named; the repair keeps all others, and tells whose text has gone', async (t) => {
  const number = numberOf(7, 5);
  const folder = await damaged(t, `UPDATE records SET token = token + 1 WHERE number = ${number}`);
  const { lost } = await inspectJournal(folder);
  assert.deepEqual(lost, [{ from: number, to: number, why: 'not what its checksum says' }]);

  const { report, aside } = await repaired(folder);
  assert.deepEqual(report.cutRequests, [`${sampleLoad} 7`]);
  assert.deepEqual(report.closedSessions, [], 'none was open when this was written');
  assert.equal(report.savedRecords + report.droppedRecords, history.length - 1);
  assert.ok(readdirSync(aside).includes('journal.sqlite'));
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('repair')),
    [],
  );
  await opened(folder, async (journal) => {
    assert.deepEqual(await textOf(journal, 7), sessionRecords(7).slice(-3, -1), 'its end and settlement are there');
    for (const request of [1, 6, 8, 40])
      assert.deepEqual(await textOf(journal, request), sessionRecords(request).slice(1, -1));
    assert.deepEqual(await textOf(journal, 41), running.slice(1));
    assert.deepEqual(journal.highestIds(sampleLoad), { session: 42, request: 42 }, 'one lost record, one id');
  });
  const { repairs, faults } = await inspectJournal(folder);
  assert.deepEqual(faults, []);
  assert.match(repairs[0] ?? '', new RegExp(`"lost":\\[\\[${number},${number}\\]\\]`));
});

test('a gap in a request that runs: what came before it stays, what came behind it goes', async (t) => {
  const number = numberOf(41, 6);
  const folder = await damaged(t, `UPDATE records SET crc32c = 1 WHERE number = ${number}`);
  const { report } = await repaired(folder);
  assert.deepEqual(report.closedSessions, [`${sampleLoad} 41`], 'requests of it may be among what is lost');
  await opened(folder, async (journal) => {
    const text = await textOf(journal, 41);
    assert.deepEqual(text.slice(0, -1), running.slice(1, 6));
    assert.equal(text.at(-1)?.kind, 'request-ended');
    assert.equal((await listed(journal.replay())).at(-1)?.kind, 'session-closed');
  });
});

test('a request whose end is lost does not run on in a session that was closed', async (t) => {
  const [end, settlement] = [numberOf(9, sessionLength - 3), numberOf(9, sessionLength - 2)];
  const folder = await damaged(t, `UPDATE records SET crc32c = 1 WHERE number IN (${end}, ${settlement})`);
  const { report } = await repaired(folder);
  assert.deepEqual(report.closedSessions, [], 'it is closed already');
  await opened(folder, async (journal) => {
    const ended = (await textOf(journal, 9)).at(-1);
    assert.equal(ended?.kind === 'request-ended' && ended.reason, 'journal-failed');
    assert.equal(
      (await recalled(journal)).requests.get(requestId(9))?.kind,
      'ending',
      'its receipts are still to come',
    );
  });
});

test('the records of a load whose admission is lost go; it is named', async (t) => {
  const folder = await damaged(t, 'UPDATE records SET crc32c = 1 WHERE number = 1');
  const { report } = await repaired(folder);
  assert.deepEqual(report.lostLoads, [1]);
  assert.equal(report.savedRecords, 0);
  await opened(folder, async (journal) => {
    assert.deepEqual(await listed(journal.replay()), []);
    await journal.commit([loadAdmitted()]);
  });
});

test('records that vanished without a trace show in the count', async (t) => {
  const folder = await damaged(t, `DELETE FROM records WHERE number = ${numberOf(3, 4)}`);
  const { lost } = await inspectJournal(folder);
  assert.deepEqual(lost, [{ from: 1, to: history.length, why: '1 records, nobody knows which' }]);
  const { report } = await repaired(folder);
  assert.deepEqual(report.cutRequests, [`${sampleLoad} 3`]);
});

test('J6: whatever page is destroyed, the repair leaves a journal that opens, and no text with a gap', async (t) => {
  const folder = await written(t);
  const database = readFileSync(databasePath(folder));
  const mark = readFileSync(join(folder, 'journal.mark'));
  const pages = database.length / 4096;
  let saved = 0;
  for (let page = 0; page < pages; page++) {
    const broken = Buffer.from(database);
    broken.fill(0xa5, page * 4096 + (page === 0 ? 100 : 0), (page + 1) * 4096);
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    writeFileSync(databasePath(folder), broken);
    writeFileSync(join(folder, 'journal.mark'), mark);
    const outcome = await repairJournal({ folder, limitBytes, now });
    if (outcome.kind === 'repaired') saved = Math.max(saved, outcome.report.savedRecords);
    await opened(folder, async (journal) => {
      for (let request = 1; request <= 40; request++) {
        const text = await textOf(journal, request).catch(() => []);
        const all = sessionRecords(request).slice(1, -1);
        if (text[0]?.kind !== 'request-admitted') continue;
        // Its end and settlement may be lost, as of one that runs; then it was ended here.
        const told = text.filter((record) => !('detail' in record) || record.detail === '');
        assert.deepEqual(told, all.slice(0, told.length), `page ${page}, request ${request}`);
        if (text.some(({ kind }) => kind === 'request-ended')) assert.ok(told.length > 0);
        if (told.some(({ kind }) => kind === 'request-settled')) assert.deepEqual(text, all);
      }
      const { sessions, requests } = await recalled(journal);
      for (const { kind, id, session } of requests.values())
        assert.equal(sessions.get(session)?.request === id, kind === 'running', `page ${page}, request ${id}`);
    });
  }
  assert.ok(saved > history.length / 2, `${saved} of ${history.length} at best`);
});

test('a missing mark, and a missing database, are repaired as far as anything is there', async (t) => {
  const folder = await written(t);
  rmSync(join(folder, 'journal.mark'));
  const { report } = await repaired(folder);
  assert.equal(report.savedRecords, history.length);
  assert.deepEqual(report.closedSessions, [`${sampleLoad} 41`]);
  rmSync(databasePath(folder));
  assert.deepEqual((await repaired(folder)).report.savedRecords, 0);
  await opened(folder, async (journal) => {
    assert.deepEqual(await listed(journal.replay()), []);
  });
});

test('a repair that was cut off in its swap keeps agents out, and is finished by the next', async (t) => {
  const folder = await damaged(t, 'UPDATE records SET crc32c = 1 WHERE number = 300');
  const other = await damaged(t, 'UPDATE records SET crc32c = 1 WHERE number = 300');
  await repaired(other);
  // As it was before the swap: the new journal is complete, the old one in its place.
  mkdirSync(join(folder, 'repair-ready'));
  for (const name of ['journal.sqlite', 'journal.mark'])
    renameSync(join(other, name), join(folder, 'repair-ready', name));
  writeFileSync(join(folder, 'repair-ready', 'aside'), 'damaged-then');
  await assert.rejects(openJournal({ folder, limitBytes }), { code: 'JOURNAL_CORRUPT' });
  assert.equal((await repairJournal({ folder, limitBytes, now })).kind, 'finished');
  await opened(folder, async (journal) => {
    assert.ok((await listed(journal.replay())).length > 900);
  });
  assert.ok(readdirSync(join(folder, 'damaged-then')).includes('journal.sqlite'));
});

test('checking reads what an agent that was killed left in its WAL, and leaves it there', async (t) => {
  const folder = join(temporaryFolder(t), 'journal');
  const copy = join(temporaryFolder(t), 'copy');
  const journal = await openJournal({ folder, limitBytes });
  await journal.commit([loadAdmitted(), requestAdmitted(1), tokenEmitted(0)]);
  execFileSync('cp', ['-r', folder, copy]); // By another process: closing the files would free this one's lock.
  await journal.close();
  const sizes = (): string[] => readdirSync(copy).map((name) => `${name} ${statSync(join(copy, name)).size}`);
  const before = sizes();
  const { records, lost, faults } = await inspectJournal(copy);
  assert.deepEqual({ records, lost, faults }, { records: 3, lost: [], faults: [] });
  assert.deepEqual(sizes(), before);
});

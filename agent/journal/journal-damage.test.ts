import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord } from '../records.ts';
import { Connection } from './connection.ts';
import { openJournal } from './journal.ts';
import { hop, loadAdmitted, oneOfEach, requestAdmitted, tokenEmitted } from './sample-records.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const limitBytes = limits.journalLeastBytes;
const pageBytes = 4096;

/** The files of a closed journal, by name. */
interface Files {
  readonly database: Buffer;
  readonly mark: Buffer;
}

const history: readonly JournalRecord[] = [
  ...oneOfEach().slice(0, -1),
  requestAdmitted(2),
  ...Array.from({ length: 800 }, (_, index) => tokenEmitted(index, 2)),
  requestAdmitted(3, { prompt: Array.from({ length: 4000 }, (_, index) => tokenEmitted(index).token) }),
];

async function wholeFiles(t: TestContext): Promise<Files> {
  const folder = temporaryFolder(t);
  const journal = await openJournal({ folder, limitBytes });
  for (let frame = 1n; frame <= 20n; frame++) journal.trail(hop(frame));
  await journal.commit(history);
  await journal.close();
  return { database: readFileSync(join(folder, 'journal.sqlite')), mark: readFileSync(join(folder, 'journal.mark')) };
}

function folderWith(t: TestContext, { database, mark }: Partial<Files>): string {
  const folder = join(temporaryFolder(t), 'journal');
  mkdirSync(folder);
  if (database !== undefined) writeFileSync(join(folder, 'journal.sqlite'), database);
  if (mark !== undefined) writeFileSync(join(folder, 'journal.mark'), mark);
  return folder;
}

/** How an opening ends: the code of its refusal, or that the whole history was there. */
async function outcome(folder: string): Promise<string> {
  try {
    const journal = await openJournal({ folder, limitBytes });
    try {
      const records: JournalRecord[] = [];
      for await (const record of journal.replay()) records.push(record);
      assert.deepEqual(records, history, 'what is opened is the whole history');
      return 'whole';
    } finally {
      await journal.close();
    }
  } catch (error) {
    assert.ok(error instanceof P4Error, String(error));
    return error.code;
  }
}

async function changedBy(t: TestContext, files: Files, sql: string): Promise<string> {
  const folder = folderWith(t, files);
  const connection = await Connection.open(join(folder, 'journal.sqlite'));
  await connection.exec(sql);
  await connection.close();
  return folder;
}

test('J6: a database cut off anywhere is refused', async (t) => {
  const files = await wholeFiles(t);
  const { database } = files;
  const pages = database.length / pageBytes;
  const lengths = [0, 1, 50, 100, 1000, ...[1, 2, pages >> 1, pages - 2, pages - 1].map((count) => count * pageBytes)];
  for (const length of [...lengths, database.length - 1, database.length - 100])
    assert.equal(
      await outcome(folderWith(t, { ...files, database: database.subarray(0, length) })),
      'JOURNAL_CORRUPT',
      `cut to ${length} of ${database.length} bytes`,
    );
  assert.equal(await outcome(folderWith(t, files)), 'whole');
});

test('J6: after one flipped bit anywhere the journal is refused, or its history is whole', async (t) => {
  const files = await wholeFiles(t);
  const { database } = files;
  const folder = folderWith(t, files);
  const counts = new Map<string, number>();
  // Steps by a prime: every part of a page is hit in some page.
  for (let bit = 0; bit < database.length * 8; bit += 10_007) {
    const flipped = Buffer.from(database);
    const byte = bit >> 3;
    flipped[byte] = (flipped[byte] ?? 0) ^ (1 << (bit & 7));
    writeFileSync(join(folder, 'journal.sqlite'), flipped);
    writeFileSync(join(folder, 'journal.mark'), files.mark);
    rmSync(join(folder, 'journal.sqlite-wal'), { force: true });
    const found = await outcome(folder);
    counts.set(found, (counts.get(found) ?? 0) + 1);
  }
  t.diagnostic(JSON.stringify(Object.fromEntries(counts)));
  assert.ok((counts.get('JOURNAL_CORRUPT') ?? 0) > 20);
});

test('J6: a damaged record is named by its number', async (t) => {
  const files = await wholeFiles(t);
  const folder = await changedBy(t, files, 'UPDATE records SET token = token + 1 WHERE number = 17');
  await assert.rejects(openJournal({ folder, limitBytes }), (error) => {
    assert.ok(error instanceof P4Error);
    assert.equal(error.code, 'JOURNAL_CORRUPT');
    assert.equal(error.facts.record, 17);
    assert.equal(error.facts.repair, '/opt/p4/libexec/p4 journal repair');
    return true;
  });
});

test('J6: a record that is gone, at the start, in the middle or at the end, is missed', async (t) => {
  const files = await wholeFiles(t);
  const gone = ['number = 2', 'number = 300', `number = ${history.length}`, `number > ${history.length - 5}`, 'true'];
  for (const which of gone)
    assert.equal(
      await outcome(await changedBy(t, files, `DELETE FROM records WHERE ${which}`)),
      'JOURNAL_CORRUPT',
      which,
    );
  const renumbered = 'UPDATE records SET number = number + 1000000 WHERE number = 300';
  assert.equal(await outcome(await changedBy(t, files, renumbered)), 'JOURNAL_CORRUPT');
});

test('J6: a journal that was made anew in the place of one with records is refused', async (t) => {
  const files = await wholeFiles(t);
  const empty = temporaryFolder(t);
  await (await openJournal({ folder: empty, limitBytes })).close();
  const database = readFileSync(join(empty, 'journal.sqlite'));
  assert.equal(await outcome(folderWith(t, { database, mark: files.mark })), 'JOURNAL_CORRUPT');
  assert.equal(await outcome(folderWith(t, { mark: files.mark })), 'JOURNAL_CORRUPT');
  assert.equal(await outcome(folderWith(t, { database: files.database })), 'JOURNAL_CORRUPT');
});

test('J6: a damaged mark is refused, and so is the mark of a longer history', async (t) => {
  const files = await wholeFiles(t);
  const { mark } = files;
  for (let byte = 0; byte < mark.length; byte += 5) {
    const flipped = Buffer.from(mark);
    flipped[byte] = (flipped[byte] ?? 0) ^ 1;
    assert.equal(await outcome(folderWith(t, { ...files, mark: flipped })), 'JOURNAL_CORRUPT', `byte ${byte}`);
  }
  assert.equal(await outcome(folderWith(t, { ...files, mark: Buffer.alloc(0) })), 'JOURNAL_CORRUPT');
  const folder = folderWith(t, files);
  const journal = await openJournal({ folder, limitBytes });
  await journal.commit([tokenEmitted(800, 2)]);
  await journal.close();
  const longer = readFileSync(join(folder, 'journal.mark'));
  assert.equal(await outcome(folderWith(t, { ...files, mark: longer })), 'JOURNAL_CORRUPT');
});

test('files that are no journal are refused and left as they are', async (t) => {
  const text = Buffer.from('not a database, '.repeat(1000));
  const folder = folderWith(t, { database: text });
  assert.equal(await outcome(folder), 'JOURNAL_CORRUPT');
  assert.deepEqual(readFileSync(join(folder, 'journal.sqlite')), text);

  const foreign = folderWith(t, {});
  const connection = await Connection.open(join(foreign, 'journal.sqlite'));
  await connection.exec('CREATE TABLE recipes (name TEXT)');
  await connection.close();
  assert.equal(await outcome(foreign), 'JOURNAL_CORRUPT');
});

test('a journal that was opened and never written to opens again without its mark', async (t) => {
  const folder = temporaryFolder(t);
  await (await openJournal({ folder, limitBytes })).close();
  rmSync(join(folder, 'journal.mark'));
  const journal = await openJournal({ folder, limitBytes });
  await journal.commit([loadAdmitted()]);
  await journal.close();
});

import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { generation, loadId, requestId, sessionId, type LoadId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { makeGenerationDigest } from '../generation-digest.ts';
import type { JournalRecord } from '../records.ts';
import { Connection } from './connection.ts';
import { openJournal, type Journal, type JournalOptions } from './journal.ts';
import { requireSqlite } from './opening.ts';
import { encodeRecord, rowText } from './record-codec.ts';
import {
  hop,
  loadAdmitted,
  oneOfEach,
  requestAdmitted,
  requestEnded,
  sampleLoad,
  tokenEmitted,
} from './sample-records.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const opened = (folder: string, options: Partial<JournalOptions> = {}): Promise<Journal> =>
  openJournal({ folder, limitBytes: limits.journalLeastBytes, ...options });

async function replayed(journal: Journal): Promise<JournalRecord[]> {
  const records: JournalRecord[] = [];
  for await (const record of journal.replay()) records.push(record);
  return records;
}

const code =
  (expected: string) =>
  (error: unknown): boolean =>
    error instanceof P4Error && error.code === expected;

test('a folder that is absent is made, closed to other users', async (t) => {
  const folder = join(temporaryFolder(t), 'a', 'b');
  const journal = await opened(folder);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.deepEqual(await replayed(journal), []);
  await journal.close();
});

test('what was committed is replayed in order, by this process and by the next', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await opened(folder);
  const records = [...oneOfEach().slice(0, -1), requestAdmitted(2)];
  for (const record of records) await journal.commit([record]);
  const tokens = Array.from({ length: 3000 }, (_, index) => tokenEmitted(index, 2));
  await journal.commit(tokens);
  assert.deepEqual(await replayed(journal), [...records, ...tokens]);
  const before = journal.stats();
  await journal.close();
  const next = await opened(folder);
  assert.deepEqual(await replayed(next), [...records, ...tokens]);
  assert.equal(next.stats().records, before.records);
  assert.equal(next.stats().recordBytes, before.recordBytes);
  await next.commit([tokenEmitted(3000, 2)]);
  assert.equal(next.stats().lastRecord, records.length + 3001);
  await next.close();
});

test('loads that have ended are not replayed, those between them are', async (t) => {
  const journal = await opened(temporaryFolder(t));
  const other = loadId('f'.repeat(32));
  const of = (load: LoadId): JournalRecord[] => [loadAdmitted(load), { kind: 'ring-ready', load }];
  await journal.commit([...of(sampleLoad), ...of(other)]);
  await journal.commit([{ kind: 'load-ended', load: sampleLoad, by: 'unload' }]);
  assert.deepEqual(await replayed(journal), of(other));
  await journal.commit([{ kind: 'load-ended', load: other, by: 'failed-load' }]);
  assert.deepEqual(await replayed(journal), []);
  await journal.close();
});

test('a load that was ended can be admitted again, and counts as a new one', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await opened(folder);
  await journal.commit([loadAdmitted(), requestAdmitted(), tokenEmitted(0)]);
  await journal.commit([{ kind: 'load-ended', load: sampleLoad, by: 'unload' }]);
  await journal.commit([loadAdmitted(), requestAdmitted(7)]);
  assert.deepEqual(await replayed(journal), [loadAdmitted(), requestAdmitted(7)]);
  await journal.close();
  const next = await opened(folder);
  assert.deepEqual(await replayed(next), [loadAdmitted(), requestAdmitted(7)]);
  await next.close();
});

test('J7: commits that are under way together share transactions and end in order', async (t) => {
  const sizes: number[] = [];
  const journal = await opened(temporaryFolder(t), {
    watch: {
      transaction: ({ records }) => sizes.push(records),
      checkpoint: () => undefined,
      compaction: () => undefined,
      removed: () => undefined,
    },
  });
  await journal.commit([loadAdmitted(), requestAdmitted()]);
  const ended: number[] = [];
  const commits = Array.from({ length: 2000 }, async (_, index) => {
    if (index % 500 === 0) await new Promise(setImmediate);
    await journal.commit([tokenEmitted(index)]);
    ended.push(index);
  });
  await Promise.all(commits);
  assert.equal(ended.length, 2000);
  assert.ok(sizes.length <= 8, `2001 commits took ${sizes.length} transactions`);
  assert.equal(journal.stats().transactions, sizes.length);
  const indexes = (await replayed(journal))
    .filter((record) => record.kind === 'token-emitted')
    .map(({ index }) => index);
  assert.deepEqual(indexes, ended);
  await journal.close();
});

test('a commit without records is a barrier: it ends after those before it', async (t) => {
  const journal = await opened(temporaryFolder(t));
  let isDurable = false;
  void journal.commit([loadAdmitted()]).then(() => (isDurable = true));
  await journal.commit([]);
  assert.equal(isDurable, true);
  await journal.close();
});

test('a replay is not disturbed by commits that come meanwhile, nor sees them', async (t) => {
  const journal = await opened(temporaryFolder(t));
  const first = Array.from({ length: limits.journalPageRecords * 2 }, (_, index) => tokenEmitted(index));
  await journal.commit([loadAdmitted(), requestAdmitted(), ...first]);
  let count = 0;
  const commits: Promise<void>[] = [];
  for await (const record of journal.replay()) {
    count += 1;
    if (record.kind === 'token-emitted') commits.push(journal.commit([tokenEmitted(record.index, 2)]));
  }
  assert.equal(count, first.length + 2);
  await Promise.all(commits);
  assert.equal(journal.stats().records, 2 * first.length + 2);
  await journal.close();
});

test('long prompts, which are read apart from their page, come back whole', async (t) => {
  const journal = await opened(temporaryFolder(t), { limitBytes: 4 * limits.journalLeastBytes });
  const prompt = Array.from({ length: 300_000 }, (_, index) => tokenEmitted(index).token);
  const records = [loadAdmitted(), requestAdmitted(1, { prompt }), tokenEmitted(0), requestAdmitted(2, { prompt })];
  await journal.commit([...records, tokenEmitted(1)]);
  assert.deepEqual(await replayed(journal), [...records, tokenEmitted(1)]);
  await journal.close();
});

test('checkpoints are taken between commits and keep the WAL short', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await opened(folder);
  await journal.commit([loadAdmitted(), requestAdmitted()]);
  const prompt = Array.from({ length: 10_000 }, (_, index) => tokenEmitted(index).token);
  for (let request = 2; request < 200; request++) await journal.commit([requestAdmitted(request, { prompt })]);
  const { checkpoints } = journal.stats();
  assert.ok(checkpoints >= 3, `${checkpoints} checkpoints`);
  assert.ok(statSync(join(folder, 'journal.sqlite-wal')).size < 2 * limits.journalCheckpointBytes);
  await journal.close();
  assert.deepEqual(readdirSync(folder).sort(), ['journal.mark', 'journal.sqlite']);
});

test('G4: no file of the journal holds a generation, in any notation', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await opened(folder);
  const secret = generation('12345678901234567891');
  const generationDigest = await makeGenerationDigest(secret);
  await journal.commit([{ ...loadAdmitted(), generationDigest }, ...oneOfEach().slice(1)]);
  for (let frame = 1n; frame < 100n; frame++) journal.trail(hop(frame));
  await journal.commit([loadAdmitted(loadId('f'.repeat(32)))]);
  const littleEndian = Buffer.alloc(8);
  littleEndian.writeBigUInt64LE(secret);
  const bigEndian = Buffer.from(littleEndian).reverse();
  const base64 = bigEndian.toString('base64').slice(0, 10);
  const notations = [secret.toString(), secret.toString(16), base64, littleEndian, bigEndian];
  const search = (): void => {
    for (const name of readdirSync(folder)) {
      // Opening the locked database here would drop this process's lock when it is closed again.
      if (name === 'journal.sqlite' && journal.stats().state === 'open') continue;
      const bytes = readFileSync(join(folder, name));
      for (const notation of notations) assert.equal(bytes.indexOf(notation), -1, `${name} holds ${String(notation)}`);
    }
  };
  search();
  await journal.close();
  search();
  assert.ok(readFileSync(join(folder, 'journal.sqlite')).includes(generationDigest.hash), 'the search sees records');
});

test('hops ride along with commits, come back newest first, and the disk keeps only the last ones', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await opened(folder, { now: () => 1_700_000_000_123 });
  await journal.commit([loadAdmitted(), requestAdmitted()]);
  const total = limits.journalHops + 500;
  for (let frame = 1; frame <= total; frame++) {
    journal.trail(hop(BigInt(frame)));
    if (frame % limits.journalHopBatch === 0) await journal.commit([tokenEmitted(frame)]);
  }
  await journal.close();
  const next = await opened(folder);
  const hops = await next.hops(total);
  assert.equal(hops.length, limits.journalHops);
  assert.deepEqual(hops[0], { number: total, at: 1_700_000_000_123, ...hop(BigInt(total)) });
  assert.equal(hops.at(-1)?.frame, BigInt(total - limits.journalHops + 1));
  assert.equal(next.stats().droppedHops, 0);
  next.trail(hop(0xffff_ffff_ffffn));
  await next.close();
  const last = await opened(folder);
  assert.deepEqual(
    (await last.hops(2)).map(({ number, frame }) => ({ number, frame })),
    [
      { number: total + 1, frame: 0xffff_ffff_ffffn },
      { number: total, frame: BigInt(total) },
    ],
  );
  await last.close();
});

test('hops that gather without a commit are written alone; too many at once drop the oldest, counted', async (t) => {
  const journal = await opened(temporaryFolder(t));
  for (let frame = 1; frame <= limits.journalLoneHops; frame++) journal.trail(hop(BigInt(frame)));
  assert.equal((await journal.hops(10_000)).length, limits.journalLoneHops);
  assert.equal(journal.stats().transactions, 0);
  for (let frame = 0; frame <= limits.journalGatheredHops; frame++) journal.trail(hop(BigInt(frame)));
  assert.equal(journal.stats().droppedHops, limits.journalGatheredHops / 4);
  await journal.close();
});

test('J4: near the limit admissions are refused, while what was admitted ends within the limit', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await opened(folder);
  const filesBytes = (): number =>
    readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  await journal.commit([loadAdmitted()]);
  const prompt = Array.from({ length: 200_000 }, (_, index) => tokenEmitted(index).token);
  let admitted = 0;
  for (; admitted < 1000; admitted++) {
    const record = requestAdmitted(admitted + 1, { prompt, maxTokens: 2000 });
    const answer = journal.admission(record);
    if (answer.kind === 'refused') {
      assert.equal(answer.error.code, 'JOURNAL_FULL');
      break;
    }
    await journal.commit([record]);
  }
  assert.ok(admitted > 10 && admitted < 1000, `${admitted} admitted`);
  assert.equal(journal.admission(loadAdmitted(loadId('f'.repeat(32)))).kind, 'admitted');
  for (let request = 1; request <= admitted; request++) {
    const tokens = Array.from({ length: 2000 }, (_, index) => tokenEmitted(index, request));
    const ends = { load: sampleLoad, session: sessionId(1), request: requestId(request) };
    await journal.commit([
      ...tokens,
      requestEnded(request),
      { kind: 'request-settled', ...ends, receipts: [], emitted: 2000 },
    ]);
  }
  await journal.commit([{ kind: 'load-ended', load: sampleLoad, by: 'unload' }]);
  assert.equal(journal.stats().reservedBytes, 0);
  assert.ok(filesBytes() <= limits.journalLeastBytes);
  await journal.close();
  assert.ok(filesBytes() <= limits.journalLeastBytes);
});

test('room that was kept for admitted requests is still kept after a restart', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await opened(folder);
  await journal.commit([loadAdmitted(), requestAdmitted(1, { maxTokens: 50_000 }), tokenEmitted(0)]);
  const { reservedBytes } = journal.stats();
  await journal.close();
  const next = await opened(folder);
  assert.equal(next.stats().reservedBytes, reservedBytes);
  await next.close();
});

test('a limit that leaves no room is refused', async (t) => {
  const folder = temporaryFolder(t);
  for (const limitBytes of [0, limits.journalLeastBytes - 1, Number.NaN])
    await assert.rejects(opened(folder, { limitBytes }), code('INVALID_ARGUMENT'));
  assert.deepEqual(readdirSync(folder), []);
});

test('a journal of a newer p4 is refused: its tables, or a kind of record', async (t) => {
  const newRow = rowText({ ...encodeRecord(tokenEmitted(0), { number: 2, load: 1, at: 0 }), kind: 200 });
  for (const change of ['INSERT INTO schema VALUES (99, 0)', `INSERT INTO records VALUES (${newRow.slice(1, -1)})`]) {
    const folder = temporaryFolder(t);
    const journal = await opened(folder);
    await journal.commit([loadAdmitted()]);
    await journal.close();
    const connection = await Connection.open(join(folder, 'journal.sqlite'));
    await connection.exec(change);
    await connection.close();
    await assert.rejects(opened(folder), code('JOURNAL_TOO_NEW'));
  }
});

test('an SQLite that can damage a WAL is refused', () => {
  requireSqlite(3_051_003);
  assert.throws(() => {
    requireSqlite(3_051_002);
  }, code('JOURNAL_SQLITE_TOO_OLD'));
});

test('bugs are told from failures: a record before its load, a load admitted twice, use after close', async (t) => {
  const journal = await opened(temporaryFolder(t));
  assert.throws(() => void journal.commit([tokenEmitted(0)]), /a load is admitted before/);
  await journal.commit([loadAdmitted()]);
  assert.throws(() => void journal.commit([loadAdmitted()]), /a load that stands is not admitted again/);
  await journal.close();
  await journal.close();
  assert.equal(journal.stats().state, 'closed');
  assert.throws(() => void journal.commit([]), /closed journal/);
});

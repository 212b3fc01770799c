import assert from 'node:assert/strict';
import { test } from 'node:test';

import { loadId, nodeIndex, requestId, sessionId, slotIndex, type LoadId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord } from '../records.ts';
import { openJournal, type Journal } from './journal.ts';
import { joined } from './retention.ts';
import {
  loadAdmitted,
  requestAdmitted,
  requestEnded,
  requestSettled,
  sampleLoad,
  tokenEmitted,
} from './sample-records.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const hour = 3600;
const day = 24 * hour;
const other = loadId('f'.repeat(32));

/** A journal whose clock the test moves. */
interface Clocked {
  readonly folder: string;
  journal: Journal;
  seconds: number;
}

async function clocked(folder: string): Promise<Clocked> {
  const clock = { folder, seconds: 1_700_000_000 };
  return Object.assign(clock, { journal: await opened(clock) });
}

const opened = (clock: { readonly folder: string; seconds: number }): Promise<Journal> =>
  openJournal({ folder: clock.folder, limitBytes: limits.journalLeastBytes, now: () => clock.seconds * 1000 });

async function reopened(clock: Clocked): Promise<void> {
  await clock.journal.close();
  clock.journal = await opened(clock);
}

async function listed(records: AsyncIterable<JournalRecord>): Promise<JournalRecord[]> {
  const list: JournalRecord[] = [];
  for await (const record of records) list.push(record);
  return list;
}

const recordsOf = ({ journal }: Clocked, request: number, load: LoadId = sampleLoad): Promise<JournalRecord[]> =>
  listed(journal.requestRecords(load, requestId(request)));

const expired = async (clock: Clocked, request: number, load?: LoadId): Promise<void> => {
  await assert.rejects(recordsOf(clock, request, load), { code: 'REQUEST_EXPIRED' });
};

const session = (of: number): { readonly load: LoadId; readonly session: ReturnType<typeof sessionId> } => ({
  load: sampleLoad,
  session: sessionId(of),
});
const openedSession = (of: number): JournalRecord => ({ kind: 'session-opened', ...session(of), slot: slotIndex(0) });
const closedSession = (of: number): JournalRecord => ({ kind: 'session-closed', ...session(of) });

/** A request of session `of` as it is written from its admission to its settlement. */
function whole(request: number, of: number, tokens = 50): JournalRecord[] {
  const fields = session(of);
  return [
    requestAdmitted(request, fields),
    ...Array.from({ length: tokens }, (_, index) => ({ ...tokenEmitted(index, request), ...fields })),
    requestEnded(request, fields),
    requestSettled(request, fields),
  ];
}

const endings = (request: number, of: number): JournalRecord[] => whole(request, of).slice(-2);

test('J4: token ids stay while their session is open and a day after; the endings for a month; then it is REQUEST_EXPIRED', async (t) => {
  const clock = await clocked(temporaryFolder(t));
  await clock.journal.commit([loadAdmitted(), openedSession(1), openedSession(2)]);
  await clock.journal.commit([...whole(1, 1), ...whole(2, 2), closedSession(1)]);

  clock.seconds += day - 1;
  await clock.journal.compact();
  assert.deepEqual(await recordsOf(clock, 1), whole(1, 1));

  clock.seconds += 1;
  await clock.journal.compact();
  assert.deepEqual(await recordsOf(clock, 1), endings(1, 1));
  assert.deepEqual(await recordsOf(clock, 2), whole(2, 2), 'its session is open');
  await reopened(clock);
  assert.deepEqual(await recordsOf(clock, 1), endings(1, 1));
  assert.deepEqual(await recordsOf(clock, 2), whole(2, 2));

  clock.seconds += 29 * day;
  await clock.journal.compact();
  await expired(clock, 1);
  assert.deepEqual(await recordsOf(clock, 2), whole(2, 2), 'its session is open still');
  await reopened(clock);
  await expired(clock, 1);
  assert.deepEqual(await recordsOf(clock, 3), [], 'this one never was');

  await clock.journal.commit([closedSession(2)]);
  clock.seconds += day;
  await clock.journal.compact();
  await expired(clock, 2);
  assert.deepEqual(clock.journal.highestIds(sampleLoad), { session: 2, request: 2 });
  assert.equal(clock.journal.stats().records, 1, 'the admission of the load is left');
  await reopened(clock);
  await expired(clock, 2);
  assert.deepEqual(clock.journal.highestIds(sampleLoad), { session: 2, request: 2 });
  assert.deepEqual(await listed(clock.journal.replay()), [loadAdmitted()]);
  await clock.journal.close();
});

test('a request that runs keeps its token ids, however long; so does one whose session stays open', async (t) => {
  const clock = await clocked(temporaryFolder(t));
  const running = whole(1, 1).slice(0, 30);
  await clock.journal.commit([loadAdmitted(), openedSession(1), ...running]);
  clock.seconds += 100 * day;
  await clock.journal.compact();
  assert.deepEqual(await recordsOf(clock, 1), running);
  await clock.journal.close();
});

test('replay leaves out sessions of which nothing but endings is left', async (t) => {
  const clock = await clocked(temporaryFolder(t));
  await clock.journal.commit([loadAdmitted(), openedSession(1), ...whole(1, 1), closedSession(1)]);
  clock.seconds += day;
  await clock.journal.commit([openedSession(2), ...whole(2, 2)]);
  await clock.journal.compact();
  const left = [loadAdmitted(), openedSession(2), ...whole(2, 2)];
  assert.deepEqual(await listed(clock.journal.replay()), left);
  await reopened(clock);
  assert.deepEqual(await listed(clock.journal.replay()), left);
  await clock.journal.close();
});

test('a load that ended goes when nothing of its requests is left, its end last; others stay', async (t) => {
  const clock = await clocked(temporaryFolder(t));
  const of = (load: LoadId): JournalRecord[] => [
    loadAdmitted(load),
    { kind: 'ring-ready', load },
    { kind: 'session-opened', load, session: sessionId(1), slot: slotIndex(0) },
    ...whole(1, 1).map((record) => ({ ...record, load })),
    { ...requestAdmitted(2), load },
    { ...tokenEmitted(0, 2), load },
  ];
  await clock.journal.commit(of(other));
  await clock.journal.commit(of(sampleLoad));
  await clock.journal.commit([{ kind: 'load-ended', load: other, by: 'unload' }]);
  clock.seconds += day;
  await clock.journal.compact();
  assert.deepEqual(
    (await recordsOf(clock, 1, other)).map(({ kind }) => kind),
    ['request-ended', 'request-settled'],
  );
  await expired(clock, 2, other); // It never ended: nothing but token ids was there.
  clock.seconds += 30 * day;
  await clock.journal.compact();
  assert.deepEqual(await recordsOf(clock, 1, other), [], 'nobody knows the load any more');
  assert.equal(clock.journal.highestIds(other), null);
  assert.deepEqual(await listed(clock.journal.replay()), of(sampleLoad));
  assert.equal(clock.journal.stats().records, of(sampleLoad).length);
  await reopened(clock);
  assert.equal(clock.journal.stats().records, of(sampleLoad).length);
  assert.equal(clock.journal.highestIds(other), null);
  await clock.journal.commit([loadAdmitted(other)]);
  assert.deepEqual(clock.journal.highestIds(other), { session: 0, request: 0 });
  await clock.journal.close();
});

test('of what happens to a ring again and again, the first readiness and the latest of each stay', async (t) => {
  const clock = await clocked(temporaryFolder(t));
  const node = (to: 'loaded' | 'lost'): JournalRecord => {
    const reason = to === 'lost' ? 'STAGE_EXITED' : null;
    return { kind: 'node-changed', load: sampleLoad, node: nodeIndex(0), to, reason };
  };
  const loss: JournalRecord[] = [
    node('lost'),
    { kind: 'ring-suspended', load: sampleLoad, reason: 'STAGE_EXITED' },
    node('loaded'),
    { kind: 'ring-ready', load: sampleLoad },
  ];
  await clock.journal.commit([loadAdmitted(), node('loaded'), { kind: 'ring-ready', load: sampleLoad }]);
  for (let loss_ = 0; loss_ < 5; loss_++) await clock.journal.commit(loss);
  clock.seconds += 30 * day;
  await clock.journal.compact();
  assert.deepEqual(
    (await listed(clock.journal.replay())).map(({ kind }) => kind),
    ['load-admitted', 'ring-ready', 'ring-suspended', 'node-changed', 'ring-ready'],
  );
  await reopened(clock);
  assert.equal(clock.journal.stats().records, 5);
  await clock.journal.close();
});

test('the room that became free is used again, and what is more goes back to the disk', async (t) => {
  const clock = await clocked(temporaryFolder(t));
  const prompt = Array.from({ length: 60_000 }, (_, index) => tokenEmitted(index).token);
  const fill = async (from: number): Promise<number> => {
    await clock.journal.commit([openedSession(from)]);
    for (let request = from; ; request++) {
      const record = requestAdmitted(request, { prompt, maxTokens: 100, ...session(from) });
      if (clock.journal.admission(record).kind === 'refused') {
        await clock.journal.commit([closedSession(from)]);
        return request;
      }
      await clock.journal.commit([record, ...endings(request, from)]);
    }
  };
  await clock.journal.commit([loadAdmitted()]);
  const full = await fill(1);
  assert.ok(full > 50, `${full} requests`);
  const before = clock.journal.stats().databaseBytes;
  clock.seconds += day;
  const record = requestAdmitted(full, { prompt, ...session(full) });
  const { error } = refusedBy(clock.journal, record);
  assert.equal(error.code, 'JOURNAL_FULL', 'nothing was looked at yet');
  await clock.journal.compact(); // It runs already: the refusal began it.
  assert.equal(clock.journal.admission(record).kind, 'admitted');
  assert.ok(clock.journal.stats().databaseBytes < before / 4);
  const again = await fill(full);
  assert.ok(again - full > full * 0.9, `${again - full} requests where ${full} had been`);
  await reopened(clock);
  await clock.journal.close();
});

function refusedBy(
  journal: Journal,
  record: Parameters<Journal['admission']>[0],
): { readonly error: { code: string } } {
  const answer = journal.admission(record);
  assert.equal(answer.kind, 'refused');
  return answer;
}

test('commits and readers go on while much is taken away', async (t) => {
  const clock = await clocked(temporaryFolder(t));
  await clock.journal.commit([loadAdmitted(), openedSession(1), openedSession(2), ...whole(1, 1, 20)]);
  for (let request = 2; request < 40; request++) await clock.journal.commit(whole(request, request % 2 ? 1 : 2, 1000));
  await clock.journal.commit([closedSession(1)]);
  clock.seconds += day;
  const reading = clock.journal.requestRecords(sampleLoad, requestId(1));
  await reading.next();
  const compaction = { isDone: false };
  const compacting = clock.journal.compact().then(() => (compaction.isDone = true));
  const rest = await listed(reading);
  assert.equal(rest.length, whole(1, 1, 20).length - 1, 'a reader that had begun sees all of it');
  let commits = 0;
  let longestMs = 0;
  const running = [openedSession(3), ...whole(40, 3).slice(0, 1)];
  await clock.journal.commit(running);
  while (!compaction.isDone) {
    const startMs = performance.now();
    await clock.journal.commit([{ ...tokenEmitted(commits, 40), ...session(3) }]);
    longestMs = Math.max(longestMs, performance.now() - startMs);
    commits += 1;
  }
  await compacting;
  t.diagnostic(`${commits} commits meanwhile, the longest took ${longestMs.toFixed(1)} ms`);
  assert.ok(commits > 20);
  assert.equal((await recordsOf(clock, 40)).length, commits + 1);
  assert.deepEqual(await recordsOf(clock, 1), endings(1, 1));
  assert.deepEqual(await recordsOf(clock, 2), whole(2, 2, 1000));
  await clock.journal.close();
});

test('ranges are put in order and joined where they meet or lie near', () => {
  const range = (from: number, to: number): { from: number; to: number } => ({ from, to });
  assert.deepEqual(joined([]), []);
  assert.deepEqual(joined([range(500, 600), range(1, 10), range(5, 20), range(40, 50)]), [
    range(1, 50),
    range(500, 600),
  ]);
  assert.deepEqual(joined([range(1, 100), range(2, 3)]), [range(1, 100)]);
});

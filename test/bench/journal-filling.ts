/**
 * Fills a journal with records of finished requests, through the path by which an agent appends.
 *
 * They are sessions of a load that stands: each opened, with one request that was admitted, drew 20 tokens, ended and was
 * settled, and closed. They bear the present time, so none of them has had its time (J4) while it is measured.
 */
import { assert, present } from '../../protocol/assert.ts';
import type { LoadId } from '../../protocol/ids.ts';
import { openJournal, type Journal } from '../../agent/journal/journal.ts';
import { sessionRecords } from '../../agent/journal/sample-records.ts';
import type { JournalRecord } from '../../agent/records.ts';

export const recordsEachSession = sessionRecords(1).length;

/** Of every journal here: four million records, with room. */
export const journalLimitBytes = 1024 ** 3;

export interface Filling {
  readonly folder: string;
  /** Records to add; a multiple of `recordsEachSession`. */
  readonly records: number;
  readonly signal: AbortSignal;
}

/** Sessions of one commit. */
const chunkSessions = 100;

/** Adds them to the one load that stands. The journal is closed again. */
export async function fillJournal({ folder, records, signal }: Filling): Promise<void> {
  const journal = await openJournal({ folder, limitBytes: journalLimitBytes });
  try {
    const load = standingLoad(journal);
    const { session, request } = present(journal.highestIds(load), 'the load is known');
    const first = Math.max(session, request) + 1;
    const end = first + records / recordsEachSession;
    assert(Number.isInteger(end), 'sessions are whole');
    const before = journal.stats().records;
    for (let next = first; next < end; next += chunkSessions) {
      signal.throwIfAborted();
      await journal.commit(sessionsOf(load, { from: next, to: Math.min(end, next + chunkSessions) }));
    }
    assert(journal.stats().records === before + records, 'the journal holds what it was given');
  } finally {
    await journal.close();
  }
}

/** The records of some sessions, the last excluded; each session's number is its request's as well. */
function sessionsOf(load: LoadId, { from, to }: { readonly from: number; readonly to: number }): JournalRecord[] {
  return Array.from({ length: to - from }, (_, index) => sessionRecords(from + index)).flatMap((records) =>
    records.map((record) => ({ ...record, load })),
  );
}

export function standingLoad(journal: Journal): LoadId {
  const standing = journal.report().loads.filter(({ stands }) => stands);
  assert(standing.length === 1, 'one load stands');
  return present(standing[0], 'one load stands').load;
}

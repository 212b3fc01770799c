import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { P4Error } from '../../protocol/errors.ts';
import { requestId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalRecord } from '../records.ts';
import type { JournalPoint } from './failpoint.ts';
import { openJournal, type Journal } from './journal.ts';
import { clockOf, sampleLoad, sessionRecords } from './sample-records.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const program = fileURLToPath(new URL('./compacting-process.js', import.meta.url));
const limitBytes = limits.journalLeastBytes;
/** Requests (of half a day each) after whose end the text of one may go, and after which its settlement may. */
const textRequests = 2;
const settlementRequests = 60;

/** Runs the process with a failpoint; what it acknowledged, and how it ended. */
async function ran(
  folder: string,
  requests: number,
  failpoint: string,
): Promise<{ last: number; signal: string | null }> {
  const child = spawn(process.execPath, [program, folder, String(requests)], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, P4_JOURNAL_FAIL: failpoint },
  });
  let last = 0;
  createInterface({ input: child.stdout }).on('line', (line) => (last = Number(line)));
  await once(child, 'close');
  return { last, signal: child.signalCode };
}

async function textOf(journal: Journal, request: number): Promise<'whole' | 'endings' | 'expired'> {
  const records: JournalRecord[] = [];
  try {
    for await (const record of journal.requestRecords(sampleLoad, requestId(request))) records.push(record);
  } catch (error) {
    assert.ok(error instanceof P4Error);
    assert.equal(error.code, 'REQUEST_EXPIRED');
    return 'expired';
  }
  const all = sessionRecords(request).slice(1, -1);
  const endings = all.slice(-2);
  if (records.length === endings.length) {
    assert.deepEqual(records, endings);
    return 'endings';
  }
  assert.deepEqual(records, all, `request ${request} is there from its admission to its settlement`);
  return 'whole';
}

/** J4, J6, J8: all that was acknowledged is there, or had its time; nothing is there by half; what is left goes. */
async function check(folder: string, acknowledged: number): Promise<void> {
  // As late as the process was at most: it may have been in the next request.
  const journal = await openJournal({ folder, limitBytes, now: () => clockOf(acknowledged + 1) });
  for (let request = 1; request <= acknowledged; request++) {
    const text = await textOf(journal, request);
    const age = acknowledged + 1 - request;
    if (age < textRequests) assert.equal(text, 'whole', `request ${request} of ${acknowledged}`);
    if (age < settlementRequests) assert.notEqual(text, 'expired', `request ${request} of ${acknowledged}`);
  }
  await journal.compact();
  for (let request = 1; request <= acknowledged; request++) {
    const age = acknowledged + 1 - request;
    const expected = age < textRequests ? 'whole' : age < settlementRequests ? 'endings' : 'expired';
    assert.equal(await textOf(journal, request), expected, `request ${request} of ${acknowledged}`);
  }
  await journal.close();
}

const opening: readonly JournalPoint[] = [
  ...(['open.before', 'open.after', 'migrate.before', 'migrate.after', 'prove.before', 'prove.after'] as const),
];
const working: readonly JournalPoint[] = [
  ...(['append.before', 'append.after', 'mark.before', 'mark.after', 'remove.before', 'remove.after'] as const),
  ...(['keep.before', 'keep.after', 'append.commit', 'checkpoint.before', 'checkpoint.after', 'close.before'] as const),
];

test('kill -9 at every named point, while it opens, commits and compacts: acknowledged is there, expired is not', async (t) => {
  const folder = temporaryFolder(t);
  let known = 0;
  const runUntilKilled = async (failpoint: string, requests: number): Promise<void> => {
    const { last, signal } = await ran(folder, requests, failpoint);
    assert.equal(signal, 'SIGKILL', `it was killed at ${failpoint}`);
    known = Math.max(known, last);
    await check(folder, known);
  };
  await ran(folder, 70, 'open.before:kill:2'); // Never passed twice: a history with all there is.
  known = 70;
  for (const point of opening) await runUntilKilled(`${point}:kill`, 1);
  for (const point of working) {
    const nth = /^(keep|checkpoint|append.commit|close)/.test(point) ? 1 : 3;
    await runUntilKilled(`${point}:kill:${nth}`, 40);
  }
});

/**
 * A process that runs requests, each in a session of its own, and compacts, until it is killed or has run as many as it
 * was told: `node … FOLDER REQUESTS`. For the crash tests.
 *
 * Half a day goes by with each request. It prints a request's number once its last commit is durable.
 */
import { writeSync } from 'node:fs';

import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { openJournal } from './journal.ts';
import { clockOf, hop, loadAdmitted, sampleLoad, sessionRecords } from './sample-records.ts';

const folder = present(process.argv[2], 'the folder is given');
const requests = Number(present(process.argv[3], 'the number of requests is given'));
let now = clockOf(0);
const journal = await openJournal({ folder, limitBytes: limits.journalLeastBytes, now: () => now });
if (journal.highestIds(sampleLoad) === null) await journal.commit([loadAdmitted()]);
const last = journal.highestIds(sampleLoad)?.request ?? 0;
for (let request = last + 1; request <= last + requests; request++) {
  now = clockOf(request);
  journal.trail(hop(BigInt(request)));
  const records = sessionRecords(request);
  await Promise.all([journal.commit(records.slice(0, 4)), journal.commit(records.slice(4))]);
  writeSync(1, `${request}\n`);
  // Not after the last: what is committed then is counted when the journal is closed.
  if (request % 8 === 0 && request < last + requests) await journal.compact();
}
await journal.close();

/**
 * A process that commits tokens one after the other until it is killed, for the crash tests: `node … FOLDER`.
 *
 * It prints the index of each token once its commit is durable. Printing is synchronous, so what the reader sees is
 * never more than what was acknowledged. Several commits are under way at once.
 */
import { writeSync } from 'node:fs';

import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { openJournal } from './journal.ts';
import { loadAdmitted, requestAdmitted, tokenEmitted } from './sample-records.ts';

const folder = present(process.argv[2], 'the folder is given');
const journal = await openJournal({ folder, limitBytes: limits.journalLeastBytes, gatherMs: 0 });
if (journal.stats().records === 0) await journal.commit([loadAdmitted(), requestAdmitted()]);
let index = Math.max(0, journal.stats().records - 2);

const commitOn = async (): Promise<never> => {
  for (;;) {
    const mine = index++;
    await journal.commit([tokenEmitted(mine)]);
    writeSync(1, `${mine}\n`);
  }
};
await Promise.all([commitOn(), commitOn(), commitOn()]);

/** For tests: an agent's journal that is full to some part of what it admits, of records that have not had their time (J4). */
import { randomBytes } from 'node:crypto';

import { admissionLimitBytes } from '../../agent/journal/database-limit.ts';
import { openJournal } from '../../agent/journal/journal.ts';
import { loadAdmitted, sessionRecords } from '../../agent/journal/sample-records.ts';
import type { AgentConfig } from '../../protocol/agent-config.ts';
import { loadId, tokenId } from '../../protocol/ids.ts';

/** While the agent does not run: sessions of a load that has ended just now, each with a long prompt. */
export async function fillJournalTo(share: number, { stateFolder, journalLimitBytes }: AgentConfig): Promise<void> {
  const journal = await openJournal({ folder: stateFolder, limitBytes: journalLimitBytes });
  const load = loadId(randomBytes(16).toString('hex'));
  await journal.commit([loadAdmitted(load)]);
  const prompt = Array.from({ length: 20_000 }, (_, index) => tokenId(index));
  const isShort = (): boolean => {
    const { databaseBytes, reservedBytes } = journal.stats();
    return databaseBytes + reservedBytes < share * admissionLimitBytes(journalLimitBytes);
  };
  for (let request = 1; isShort(); request += 1) {
    const records = sessionRecords(request).map((record) => ({
      ...(record.kind === 'request-admitted' ? { ...record, prompt } : record),
      load,
    }));
    await journal.commit(records);
  }
  await journal.commit([{ kind: 'load-ended', load, by: 'unload' }]);
  await journal.close();
}

/** For tests: an agent's journal that is full, or full to some part of what it admits (J4). Its agent does not run. */
import { randomBytes } from 'node:crypto';

import { admissionLimitBytes } from '../../agent/journal/database-limit.ts';
import { openJournal, type Journal } from '../../agent/journal/journal.ts';
import { loadAdmitted, sessionRecords } from '../../agent/journal/sample-records.ts';
import type { AgentConfig } from '../../protocol/agent-config.ts';
import { loadId, tokenId } from '../../protocol/ids.ts';

const dayMs = 86_400_000;

/** With what has had its time: compaction makes room. */
export async function fillWithExpired(config: AgentConfig): Promise<void> {
  const now = Date.now() - 40 * dayMs;
  // What refuses here is an estimate; the agent measures anew when it opens the journal. Twenty more are 2.6 MB, which
  // some slices of compaction do not make room of.
  let more = 20;
  await fill(
    config,
    () => now,
    (journal) => {
      if (journal.admission(loadAdmitted()).kind === 'refused') more -= 1;
      return more < 0;
    },
  );
}

/** With what has not had its time. */
export async function fillJournalTo(share: number, config: AgentConfig): Promise<void> {
  await fill(config, Date.now, (journal) => {
    const { databaseBytes, reservedBytes } = journal.stats();
    return databaseBytes + reservedBytes >= share * admissionLimitBytes(config.journalLimitBytes);
  });
}

/** Sessions of a load that ends with the last of them, each with a long prompt. */
async function fill(
  { stateFolder, journalLimitBytes }: AgentConfig,
  now: () => number,
  isFull: (journal: Journal) => boolean,
): Promise<void> {
  const journal = await openJournal({ folder: stateFolder, limitBytes: journalLimitBytes, now });
  const load = loadId(randomBytes(16).toString('hex'));
  await journal.commit([loadAdmitted(load)]);
  const prompt = Array.from({ length: 20_000 }, (_, index) => tokenId(index));
  for (let request = 1; !isFull(journal); request += 1) {
    const records = sessionRecords(request).map((record) => ({
      ...(record.kind === 'request-admitted' ? { ...record, prompt } : record),
      load,
    }));
    await journal.commit(records);
  }
  await journal.commit([{ kind: 'load-ended', load, by: 'unload' }]);
  await journal.close();
}

/** For crash tests: an agent's journal that is full, and all that fills it has had its time (J4). */
import { randomBytes } from 'node:crypto';

import { openJournal } from '../../agent/journal/journal.ts';
import { loadAdmitted, sessionRecords } from '../../agent/journal/sample-records.ts';
import type { AgentConfig } from '../../protocol/agent-config.ts';
import { loadId, tokenId } from '../../protocol/ids.ts';

const dayMs = 86_400_000;

/** While the agent does not run. */
export async function fillWithExpired({ stateFolder, journalLimitBytes }: AgentConfig): Promise<void> {
  const now = Date.now() - 40 * dayMs;
  const journal = await openJournal({ folder: stateFolder, limitBytes: journalLimitBytes, now: () => now });
  const load = loadId(randomBytes(16).toString('hex'));
  const admitted = loadAdmitted(load);
  await journal.commit([admitted]);
  const prompt = Array.from({ length: 20_000 }, (_, index) => tokenId(index));
  // What refuses here is an estimate; the agent measures anew when it opens the journal. Twenty more are 2.6 MB, which
  // some slices of compaction do not make room of.
  for (let request = 1, more = 20; more > 0; request += 1) {
    if (journal.admission(admitted).kind === 'refused') more -= 1;
    const records = sessionRecords(request).map((record) => ({
      ...(record.kind === 'request-admitted' ? { ...record, prompt } : record),
      load,
    }));
    await journal.commit(records);
  }
  await journal.commit([{ kind: 'load-ended', load, by: 'unload' }]);
  await journal.close();
}

/**
 * A process that holds a journal, and appends emitted tokens to it as it is told: `fork … FOLDER`.
 *
 * Each token is a commit of its own, and the next begins when it is durable: as a ring with one session draws them.
 */
import { assert, present } from '../../protocol/assert.ts';
import { requestId, sessionId, slotIndex } from '../../protocol/ids.ts';
import { openJournal } from '../../agent/journal/journal.ts';
import { requestAdmitted, tokenEmitted } from '../../agent/journal/sample-records.ts';
import type { AppendAnswer, AppendOrder, AppendTimes } from './journal-append-messages.ts';
import { journalLimitBytes, standingLoad } from './journal-filling.ts';

const folder = present(process.argv[2], 'the folder is given');
const journal = await openJournal({ folder, limitBytes: journalLimitBytes, gatherMs: 0 });
const load = standingLoad(journal);
const highest = present(journal.highestIds(load), 'the load is known');
const id = Math.max(highest.session, highest.request) + 1;
const of = { load, session: sessionId(id), request: requestId(id) };
await journal.commit([
  { kind: 'session-opened', load, session: of.session, slot: slotIndex(0) },
  requestAdmitted(id, of),
]);
let index = 0;

function say(answer: AppendAnswer): void {
  assert(process.send !== undefined, 'the benchmark has forked this process');
  process.send(answer);
}

async function append(count: number): Promise<AppendTimes> {
  const startCpu = process.cpuUsage();
  const startMs = performance.now();
  for (const end = index + count; index < end; index++) await journal.commit([{ ...tokenEmitted(index), ...of }]);
  const ms = performance.now() - startMs;
  const { user, system } = process.cpuUsage(startCpu);
  return { ms, cpuMs: (user + system) / 1000 };
}

process.on('message', (order: AppendOrder) => {
  switch (order.kind) {
    case 'append':
      void append(order.count).then((times) => {
        say({ kind: 'appended', ...times, records: journal.stats().records });
      });
      return;
    case 'close':
      void journal.close().then(() => process.exit(0));
      return;
  }
});
process.on('disconnect', () => {
  process.exit(0);
});
say({ kind: 'opened', records: journal.stats().records });

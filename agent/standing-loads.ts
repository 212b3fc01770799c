/** What the journal says stood when the agent ended: its loads, and the ids that each has used. */
import { requestId, sessionId, type LoadId } from '../protocol/ids.ts';
import type { Input } from './inputs.ts';
import type { JournalRecord } from './records.ts';
import { newLoadIds } from './state.ts';

export type StandingLoad = Extract<Input, { kind: 'restored' }>;

/** @param records those of loads that have not ended, in the order of their commits */
export async function standingLoads(records: AsyncIterable<JournalRecord>): Promise<readonly StandingLoad[]> {
  const loads = new Map<LoadId, StandingLoad>();
  for await (const record of records) {
    if (record.kind === 'load-admitted') {
      loads.set(record.load, { ...record, kind: 'restored', firstIds: newLoadIds });
      continue;
    }
    const standing = loads.get(record.load);
    if (standing !== undefined) loads.set(record.load, { ...standing, firstIds: idsAfter(standing.firstIds, record) });
  }
  return [...loads.values()];
}

function idsAfter({ session, request }: StandingLoad['firstIds'], record: JournalRecord): StandingLoad['firstIds'] {
  if (record.kind === 'session-opened') return { session: sessionId(Math.max(session, record.session + 1)), request };
  if (record.kind === 'request-admitted') return { session, request: requestId(Math.max(request, record.request + 1)) };
  return { session, request };
}

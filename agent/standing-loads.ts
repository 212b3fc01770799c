/** What the journal says stood when the agent ended: its loads, and how far their sessions and requests were. */
import type { HostName, LoadId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { readAssignment, termsOf, underTerms, type Assignment } from './assignment.ts';
import { HeadRecall } from './head/memory.ts';
import type { Input } from './inputs.ts';
import type { Journal } from './journal/journal.ts';
import type { LoadAdmitted, LoadTerms } from './records.ts';

export interface StandingLoad {
  readonly admitted: LoadAdmitted;
  /** `null` where this p4 cannot read what another wrote down. */
  readonly assignment: Assignment | null;
  /** What `step` is told of it. */
  readonly restored: Extract<Input, { kind: 'restored' }>;
}

/** One load's records, as far as they were read. */
interface Recall {
  readonly admitted: LoadAdmitted;
  readonly head: HeadRecall;
  /** What it was told last; `null` where that is what it was admitted with. */
  terms: LoadTerms | null;
}

/** Of the loads that have not ended, in the order of their admissions. */
export async function standingLoads(
  journal: Pick<Journal, 'replay' | 'highestIds'>,
  host: HostName,
): Promise<readonly StandingLoad[]> {
  const loads = new Map<LoadId, Recall>();
  for await (const record of journal.replay()) {
    if (record.kind === 'load-admitted') {
      const head = new HeadRecall(journal.highestIds(record.load) ?? { session: 0, request: 0 });
      loads.set(record.load, { admitted: record, head, terms: null });
      continue;
    }
    const recall = loads.get(record.load);
    if (recall !== undefined && record.kind === 'load-told') recall.terms = record;
    recall?.head.add(record);
  }
  return [...loads.values()].map((recall) => standingLoad(recall, host));
}

function standingLoad({ admitted, head, terms }: Recall, host: HostName): StandingLoad {
  const { ring, load, generationDigest, planDigest } = admitted;
  const named = { kind: 'restored', ring, load, generationDigest, planDigest, memory: head.memory } as const;
  const reading = readAssignment(admitted.assignment, { ring, host });
  if (reading.kind === 'unreadable') {
    const unknown = { deadlineSeconds: limits.defaultDeadlineSeconds, addresses: [] };
    return { admitted, assignment: null, restored: { ...named, terms: terms ?? unknown, fault: reading.error } };
  }
  const assignment = terms === null ? reading.assignment : underTerms(reading.assignment, terms);
  return { admitted, assignment, restored: { ...named, terms: termsOf(assignment), fault: null } };
}

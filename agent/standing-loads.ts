/** What the journal says stood when the agent ended: its loads, and how far their sessions and requests were. */
import type { LoadId } from '../protocol/ids.ts';
import { readAssignment, type Assignment } from './assignment.ts';
import { HeadRecall } from './head/memory.ts';
import type { Input } from './inputs.ts';
import type { Journal } from './journal/journal.ts';
import type { LoadAdmitted } from './records.ts';

export interface StandingLoad extends Assignment {
  readonly admitted: LoadAdmitted;
  /** What `step` is told of it. */
  readonly restored: Extract<Input, { kind: 'restored' }>;
}

/** Of the loads that have not ended, in the order of their admissions. */
export async function standingLoads(journal: Pick<Journal, 'replay' | 'highestIds'>): Promise<readonly StandingLoad[]> {
  const loads = new Map<LoadId, { readonly admitted: LoadAdmitted; readonly recall: HeadRecall }>();
  for await (const record of journal.replay()) {
    if (record.kind === 'load-admitted') {
      const recall = new HeadRecall(journal.highestIds(record.load) ?? { session: 0, request: 0 });
      loads.set(record.load, { admitted: record, recall });
    } else loads.get(record.load)?.recall.add(record);
  }
  return [...loads.values()].map(({ admitted, recall }) => {
    const { ring, load, generationDigest, planDigest, assignment } = admitted;
    const { plan, placements } = readAssignment(assignment);
    const deadlineMs = plan.deadlineSeconds * 1000;
    return {
      ...{ admitted, plan, placements },
      restored: { kind: 'restored', ring, load, generationDigest, planDigest, memory: recall.memory, deadlineMs },
    };
  });
}

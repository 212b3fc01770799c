/** A load's share as the journal keeps it: the plan, and where its slices and agents are. The generation is not in it (G4). */
import { assert } from '../protocol/assert.ts';
import { sliceId } from '../protocol/ids.ts';
import { itemsOf, memberOf } from '../protocol/plain-value.ts';
import { parsePlan } from '../protocol/plan-document.ts';
import type { Plan } from '../protocol/plan.ts';
import type { Placement } from './inputs.ts';

export interface Assignment {
  readonly plan: Plan;
  readonly placements: readonly Placement[];
}

/** @param plan the text of a good plan */
export const assignmentText = (plan: string, placements: readonly Placement[]): string =>
  JSON.stringify({ plan, placements });

/** Of a text that `assignmentText` made. */
export function readAssignment(text: string): Assignment {
  const value: unknown = JSON.parse(text);
  const reading = parsePlan(String(memberOf(value, 'plan')), 'the plan of a load');
  assert(reading.kind === 'plan', 'only a good plan is admitted');
  const placements = itemsOf(memberOf(value, 'placements')).map((placement): Placement => ({
    sliceId: sliceId(String(memberOf(placement, 'sliceId'))),
    address: String(memberOf(placement, 'address')),
    port: Number(memberOf(placement, 'port')),
  }));
  return { plan: reading.plan, placements };
}

/** A load's share as the journal keeps it: the plan, and where its slices and agents are. The generation is not in it (G4). */
import { P4Error } from '../protocol/errors.ts';
import { faultsText } from '../protocol/fault.ts';
import { sliceId, type HostName, type RingName } from '../protocol/ids.ts';
import { itemsOf, memberOf } from '../protocol/plain-value.ts';
import { parsePlan } from '../protocol/plan-document.ts';
import type { Plan } from '../protocol/plan.ts';
import type { Placement } from './inputs.ts';
import { lossText } from './outcome.ts';
import type { LoadTerms } from './records.ts';

export interface Assignment {
  readonly plan: Plan;
  /** One for each stage of the plan. */
  readonly placements: readonly Placement[];
}

export type AssignmentReading =
  | { readonly kind: 'assignment'; readonly assignment: Assignment }
  /** Another p4 wrote it, whose plans this one does not accept: `LOAD_NOT_READABLE`. */
  | { readonly kind: 'unreadable'; readonly error: P4Error };

/** @param plan the text of a good plan */
export const assignmentText = (plan: string, placements: readonly Placement[]): string =>
  JSON.stringify({ plan, placements });

/** Of a text that an `assignmentText` made, if not this one's. Never throws for any text. */
export function readAssignment(
  text: string,
  of: { readonly ring: RingName; readonly host: HostName },
): AssignmentReading {
  const unreadable = (found: string): AssignmentReading => ({
    kind: 'unreadable',
    error: new P4Error('LOAD_NOT_READABLE', { ...of, found }),
  });
  try {
    const value: unknown = JSON.parse(text);
    const reading = parsePlan(String(memberOf(value, 'plan')), 'the plan of the load');
    if (reading.kind === 'faults') return unreadable(faultsText(reading.faults));
    const placements = itemsOf(memberOf(value, 'placements')).map(readPlacement);
    if (placements.length !== reading.plan.stages.length)
      return unreadable(`${placements.length} placements of ${reading.plan.stages.length} stages`);
    return { kind: 'assignment', assignment: { plan: reading.plan, placements } };
  } catch (error) {
    if (error instanceof SyntaxError) return unreadable(error.message);
    if (error instanceof P4Error) return unreadable(lossText(error));
    throw error;
  }
}

const readPlacement = (placement: unknown): Placement => ({
  sliceId: sliceId(String(memberOf(placement, 'sliceId'))),
  address: String(memberOf(placement, 'address')),
  port: Number(memberOf(placement, 'port')),
});

export const termsOf = ({ plan, placements }: Assignment): LoadTerms => ({
  deadlineSeconds: plan.deadlineSeconds,
  addresses: placements.map(({ address, port }) => ({ address, port })),
});

/** The same plan and slices under other terms. */
export const underTerms = ({ plan, placements }: Assignment, terms: LoadTerms): Assignment => ({
  plan: { ...plan, deadlineSeconds: terms.deadlineSeconds },
  placements: placements.map((placement, index) => ({ ...placement, ...terms.addresses[index] })),
});

export const sameTerms = (one: LoadTerms, other: LoadTerms): boolean =>
  one.deadlineSeconds === other.deadlineSeconds &&
  one.addresses.length === other.addresses.length &&
  one.addresses.every(({ address, port }, index) => {
    const there = other.addresses[index];
    return address === there?.address && port === there.port;
  });

/** What a decision about a head's sessions and requests comes to; like `step`, for the part of the state that is the head's. */
import type { LoadId, RingName } from '../../protocol/ids.ts';
import type { CallId, CallReply } from '../calls.ts';
import type { Effect } from '../effects.ts';
import type { JournalRecord } from '../records.ts';
import type { HeadState } from './head-state.ts';

export interface HeadStep {
  readonly head: HeadState;
  readonly records: readonly JournalRecord[];
  readonly effects: readonly Effect[];
}

export interface LoadAddress {
  readonly ring: RingName;
  readonly load: LoadId;
}

export const unchangedHead = (head: HeadState): HeadStep => ({ head, records: [], effects: [] });

export const repliedHead = (head: HeadState, call: CallId, reply: CallReply): HeadStep => ({
  head,
  records: [],
  effects: [{ kind: 'reply', call, reply }],
});

/** Two steps as one: the second was taken from the first one's state. */
export function followed(first: HeadStep, second: HeadStep): HeadStep {
  return {
    head: second.head,
    records: [...first.records, ...second.records],
    effects: [...first.effects, ...second.effects],
  };
}

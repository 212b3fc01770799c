/** What a decision about a head's sessions and requests comes to; like `step`, for the part of the state that is the head's. */
import type { LoadId, RingName } from '../../protocol/ids.ts';
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

/** What an agent knows: the rings it has a part in. Immutable; only `step` makes the next one. */
import type { P4Error } from '../protocol/errors.ts';
import { requestId, sessionId } from '../protocol/ids.ts';
import type { Generation, HostName, LoadId, NodeIndex, RequestId, RingName, SessionId } from '../protocol/ids.ts';
import type { Plan } from '../protocol/plan.ts';
import type { CallId, LinkedEdge } from './calls.ts';
import type { HeadState } from './head/head-state.ts';
import type { Placement } from './inputs.ts';

export interface AgentState {
  readonly host: HostName;
  readonly rings: ReadonlyMap<RingName, RingState>;
  /** Counts the starts of stages, so that news of a former one is told apart (R2). */
  readonly nextIncarnation: number;
}

export type RingState = ClaimedRing | LiveRing;

/** The journal says that the ring's name belongs to a load, of which nothing runs here (R2: its nodes are empty). */
export interface ClaimedRing {
  readonly kind: 'claimed';
  readonly ring: RingName;
  readonly load: LoadId;
  readonly planDigest: string;
  readonly generationDigest: { readonly salt: string; readonly hash: string };
  readonly firstIds: FirstIds;
}

/** The ids that a load's next session and request get: none of a load is ever used twice (E1). */
export interface FirstIds {
  readonly session: SessionId;
  readonly request: RequestId;
}

export const newLoadIds: FirstIds = { session: sessionId(1), request: requestId(1) };

export interface LiveRing {
  readonly kind: 'live';
  readonly ring: RingName;
  readonly load: LoadId;
  /** In memory only (G4). */
  readonly generation: Generation;
  readonly planDigest: string;
  readonly generationDigest: { readonly salt: string; readonly hash: string };
  readonly plan: Plan;
  readonly placements: readonly Placement[];
  readonly phase: RingPhase;
  /** The stages of this host. */
  readonly nodes: ReadonlyMap<NodeIndex, NodeState>;
  readonly links: readonly LinkedEdge[];
  /** Where a head that comes up now begins to count. */
  readonly firstIds: FirstIds;
  /** Only where node 0 is, and once it is loaded. */
  readonly head: HeadState | null;
}

export type RingPhase =
  | { readonly kind: 'loading'; readonly calls: readonly CallId[] }
  | { readonly kind: 'loaded' }
  | { readonly kind: 'linking'; readonly call: CallId }
  /** Ready as far as this host can tell; where the head is, a probe comes next. */
  | { readonly kind: 'linked' }
  | { readonly kind: 'probing'; readonly call: CallId; readonly nonce: number; readonly sinceMs: number }
  | { readonly kind: 'ready' }
  | { readonly kind: 'lost'; readonly error: P4Error }
  /** `reply` goes to the calls when the last stage has ended; then the ring is forgotten. */
  | { readonly kind: 'ending'; readonly calls: readonly CallId[]; readonly failure: P4Error | null };

export type NodeState =
  | { readonly kind: 'loading'; readonly incarnation: number }
  | { readonly kind: 'loaded'; readonly incarnation: number; readonly pid: number }
  | { readonly kind: 'lost'; readonly incarnation: number; readonly error: P4Error }
  | { readonly kind: 'stopping'; readonly incarnation: number }
  | { readonly kind: 'stopped'; readonly incarnation: number };

export const isHead = (ring: LiveRing, host: HostName): boolean => ring.plan.stages[0]?.host === host;

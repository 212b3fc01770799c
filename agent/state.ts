/** What an agent knows: the rings it has a part in. Immutable; only `step` makes the next one. */
import type { P4Error } from '../protocol/errors.ts';
import type { Generation, HostName, LoadId, NodeIndex, RingName } from '../protocol/ids.ts';
import type { Plan } from '../protocol/plan.ts';
import type { CallId, LinkedEdge } from './calls.ts';
import type { HeadState } from './head/head-state.ts';
import type { HeadMemory } from './head/memory.ts';
import type { Placement } from './inputs.ts';
import type { LoadEnded, LoadTerms } from './records.ts';

export interface AgentState {
  readonly host: HostName;
  readonly rings: ReadonlyMap<RingName, RingState>;
  /** Counts the starts of stages, so that news of a former one is told apart (R2). */
  readonly nextIncarnation: number;
  /** Counts suspensions, so that the timers of a former one change nothing. */
  readonly nextSuspension: number;
}

export type RingState = ClaimedRing | LiveRing;

/** The journal says that the ring's name belongs to a load, of which nothing runs here (R2: its nodes are empty). */
export interface ClaimedRing {
  readonly kind: 'claimed';
  readonly ring: RingName;
  readonly load: LoadId;
  readonly planDigest: string;
  readonly generationDigest: { readonly salt: string; readonly hash: string };
  /** Under which terms it was loaded, as they were told last. */
  readonly terms: LoadTerms;
  /** Why what was loaded cannot be taken up here: another p4 wrote it down. */
  readonly fault: P4Error | null;
  /** What its sessions and requests were: they wait for the load (R2). */
  readonly memory: HeadMemory;
  /** Number of the suspension in which its requests are. */
  readonly suspension: number;
}

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
  /** While a part of the ring is lost (R1); the phase says how far its return has come on this host. */
  readonly suspension: Suspension | null;
  /** The stages of this host. */
  readonly nodes: ReadonlyMap<NodeIndex, NodeState>;
  readonly links: readonly LinkedEdge[];
  /** What a head that comes up now goes on with. */
  readonly memory: HeadMemory;
  /** Only where node 0 is, and once it is loaded. */
  readonly head: HeadState | null;
}

export interface Suspension {
  readonly number: number;
  /** What was lost, as well as it is known here. */
  readonly error: P4Error;
  /** On the clock that only goes forward, in milliseconds. */
  readonly sinceMs: number;
  /** Tries to bring the ring back that failed. */
  readonly attempt: number;
  /** Whether the plan's deadline is over: its requests have failed (R4), and none is admitted until it is back. */
  readonly isOverdue: boolean;
  /** When a stage of the ring was last known to load again, on the same clock: the deadline counts from there (R1). */
  readonly progressMs: number;
  /** Stages of this host that ended meanwhile: one that ends whenever it is started puts the deadline off no more (R4). */
  readonly stagesLost: number;
}

export type RingPhase =
  | { readonly kind: 'loading'; readonly calls: readonly CallId[] }
  | { readonly kind: 'loaded' }
  | { readonly kind: 'linking'; readonly calls: readonly CallId[] }
  /** Ready as far as this host can tell; where the head is, a probe comes next. */
  | { readonly kind: 'linked' }
  | {
      readonly kind: 'probing';
      readonly calls: readonly CallId[];
      readonly nonce: number;
      readonly sinceMs: number;
    }
  | { readonly kind: 'ready' }
  /** Some links could not be made; they are dialled again at the next retry. */
  | { readonly kind: 'unlinked' }
  /** `reply` goes to the calls when the last stage has ended; then the ring is forgotten. */
  | {
      readonly kind: 'ending';
      readonly calls: readonly CallId[];
      readonly failure: P4Error | null;
      readonly by: LoadEnded['by'];
    };

export type NodeState =
  | { readonly kind: 'loading'; readonly incarnation: number }
  /** It has its weights, and is made empty by a new connection. */
  | { readonly kind: 'attaching'; readonly incarnation: number }
  | { readonly kind: 'loaded'; readonly incarnation: number; readonly pid: number }
  | { readonly kind: 'lost'; readonly incarnation: number; readonly error: P4Error }
  | { readonly kind: 'stopping'; readonly incarnation: number }
  | { readonly kind: 'stopped'; readonly incarnation: number };

export const isHead = (ring: LiveRing, host: HostName): boolean => ring.plan.stages[0]?.host === host;

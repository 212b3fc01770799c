/** Everything that can happen to an agent, as data: what `step` decides about. */
import type { FinishReason } from '../protocol/finish.ts';
import type { P4Error } from '../protocol/errors.ts';
import type {
  Generation,
  HostName,
  LoadId,
  NodeIndex,
  RequestId,
  RingName,
  SessionId,
  SliceId,
  TokenId,
} from '../protocol/ids.ts';
import type { StepTime } from '../protocol/hop-frame.ts';
import type { HopItem } from '../protocol/hop-items.ts';
import type { Plan } from '../protocol/plan.ts';
import type { Sampling } from '../protocol/sampling.ts';
import type { Vocabulary } from './head/vocabulary.ts';
import type { CallId, LinkedEdge } from './calls.ts';
import type { LoadAdmitted, LoadTerms } from './records.ts';
import type { HeadMemory } from './head/memory.ts';

export type Input = OperatorInput | NodeInput | LinkInput | TimerInput | OuterInput | RingInput;
export type InputKind = Input['kind'];

/** A call names a ring and carries the generation it believes in (G3). */
interface Addressed {
  readonly call: CallId;
  readonly ring: RingName;
  readonly generation: Generation;
}

export type OperatorInput =
  | ({ readonly kind: 'load' } & Addressed & LoadOrder)
  | ({ readonly kind: 'link'; readonly atMs: number } & Addressed)
  | ({ readonly kind: 'probe'; readonly nonce: number; readonly atMs: number } & Addressed)
  | ({ readonly kind: 'unload'; readonly digestMatches: boolean } & Addressed)
  /** At start, before anything else: a load that the journal holds and no unload ended. */
  | ({
      readonly kind: 'restored';
      readonly memory: HeadMemory;
      readonly terms: LoadTerms;
      /** Why it cannot be taken up. */
      readonly fault: P4Error | null;
    } & Omit<LoadAdmitted, 'kind' | 'assignment'>)
  /** At start: stages of a standing load live on, and their generation fits its digest (R2). */
  | ({ readonly kind: 'adopted' } & Adoption)
  /** Root on this host gives the ring up without its generation (G7). */
  | { readonly kind: 'forget'; readonly call: CallId; readonly ring: RingName };

export interface Adoption {
  readonly ring: RingName;
  readonly load: LoadId;
  readonly generation: Generation;
  readonly plan: Plan;
  readonly placements: readonly Placement[];
  /** The stages that live, by the number of their start. */
  readonly stages: ReadonlyMap<NodeIndex, number>;
  /** The highest such number of any ring's: new ones are above it. */
  readonly highestStart: number;
  readonly atMs: number;
}

export interface LoadOrder {
  readonly load: LoadId;
  readonly atMs: number;
  readonly plan: Plan;
  readonly planDigest: string;
  readonly assignment: string;
  /** One for each stage of the ring. */
  readonly placements: readonly Placement[];
  /** Salted digest of the generation, for the record (G4). */
  readonly generationDigest: { readonly salt: string; readonly hash: string };
  /** Whether the generation fits the digest of the load that stands under this ring's name; false if none does. */
  readonly digestMatches: boolean;
}

export interface Placement {
  readonly sliceId: SliceId;
  readonly address: string;
  readonly port: number;
}

interface OfNode extends OfLoad {
  readonly node: NodeIndex;
  /** Which start of the stage this is news of; news of a former one changes nothing (R2). */
  readonly incarnation: number;
}

export type NodeInput =
  /** `vocabulary` from the head stage, `null` from the others. */
  | ({
      readonly kind: 'stage-loaded';
      readonly pid: number;
      readonly vocabulary: Vocabulary | null;
      /** Whether its rows can be another session's as they are. */
      readonly keepsPrefixes: boolean;
      readonly atMs: number;
    } & OfNode)
  | ({ readonly kind: 'stage-lost'; readonly error: P4Error; readonly atMs: number } & OfNode)
  | ({ readonly kind: 'stage-stopped' } & OfNode);

export type LinkInput =
  | ({ readonly kind: 'link-up'; readonly link: LinkedEdge; readonly atMs: number } & OfLoad)
  /** An edge could not be dialled; those that stand are untouched. */
  | ({
      readonly kind: 'dial-failed';
      readonly source: NodeIndex;
      readonly error: P4Error;
      readonly atMs: number;
    } & OfLoad)
  /** Behind the edge that leaves `source`, which stands, a stage loads. */
  | ({ readonly kind: 'neighbour-loads'; readonly source: NodeIndex; readonly atMs: number } & OfLoad)
  /** An edge that stood is gone, and with it all ways of the ring on this host. */
  | ({ readonly kind: 'link-lost'; readonly error: P4Error; readonly atMs: number } & OfLoad);

/** What the shell's timers bring; one of a former suspension changes nothing. */
export type TimerInput =
  | ({ readonly kind: 'probe-timeout'; readonly nonce: number; readonly atMs: number } & OfLoad)
  | ({ readonly kind: 'retry'; readonly suspension: number; readonly attempt: number; readonly atMs: number } & OfLoad)
  | ({ readonly kind: 'recovery-deadline'; readonly suspension: number; readonly atMs: number } & OfLoad)
  /** A slot may be free for a call that waits. */
  | ({ readonly kind: 'serve-queue'; readonly call: CallId } & OfLoad)
  /** Nobody took a session's lease up in time. */
  | ({ readonly kind: 'lease-expired'; readonly session: SessionId } & OfLoad);

interface OfLoad {
  readonly ring: RingName;
  readonly load: LoadId;
}

export type OuterInput =
  /** `owner`: sessions of one may have each other's rows; `null` for a session that shares with none. */
  | ({ readonly kind: 'open-session'; readonly owner: string | null; readonly waits: boolean } & Addressed)
  /** The caller of an `open-session` that waits has gone; `call` is that one's. */
  | ({ readonly kind: 'leave-queue' } & Addressed)
  /** Takes up the lease of a session that stands. */
  | ({ readonly kind: 'resume-session'; readonly session: SessionId } & Addressed)
  | ({ readonly kind: 'submit'; readonly session: SessionId } & Addressed & Submission)
  | ({ readonly kind: 'cancel'; readonly session: SessionId; readonly request: RequestId } & Addressed)
  | ({ readonly kind: 'close-session'; readonly session: SessionId } & Addressed)
  | ({ readonly kind: 'settle'; readonly session: SessionId; readonly request: RequestId } & Addressed);

export interface Submission {
  readonly prompt: readonly TokenId[];
  readonly sampling: Sampling;
  readonly stopStrings: readonly string[];
  readonly maxTokens: number;
  readonly ignoreEnd: boolean;
}

export type RingInput =
  /** What came all the way round to the head. */
  | {
      readonly kind: 'returned';
      readonly ring: RingName;
      readonly load: LoadId;
      readonly items: readonly HopItem[];
      /** Of all decodes that the frame was in: the one that took longest. */
      readonly slowest: StepTime;
      readonly atMs: number;
    }
  /** The head stage has finished a frame. */
  | { readonly kind: 'frame-finished'; readonly ring: RingName; readonly load: LoadId };

/** How a request's end is told to its readers. */
export interface RequestEnd {
  readonly reason: FinishReason;
  readonly text: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly detail: string;
}

export interface RequestAddress {
  readonly ring: RingName;
  readonly load: LoadId;
  readonly session: SessionId;
  readonly request: RequestId;
}

/** Where a stage's agent runs; equal hosts hop by function call (E2). */
export const hostOf = (plan: Plan, node: NodeIndex): HostName | undefined => plan.stages[node]?.host;

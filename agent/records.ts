/**
 * What an agent writes down: the durable facts from which it can say, after any crash, what it admitted.
 *
 * A record names its load by load id, never by generation (G4). Token ids are kept; prompts as text are not.
 */
import type { LoadId, NodeIndex, RequestId, RingName, SessionId, SlotIndex, TokenId } from '../protocol/ids.ts';
import type { FinishReason } from '../protocol/finish.ts';
import type { Sampling } from '../protocol/sampling.ts';
import type { Receipt } from '../protocol/hop-items.ts';

/** A receipt as it is kept: without its generation (G4). */
export type KeptReceipt = Omit<Receipt, 'sourceGeneration'>;

export type JournalRecord =
  | LoadAdmitted
  | LoadTold
  | NodeChanged
  | RingReady
  | RingSuspended
  | LoadEnded
  | SessionOpened
  | SessionClosed
  | RequestAdmitted
  | TokenEmitted
  | RequestEnded
  | RequestSettled;

/** G6, J1: the ring's name on this host belongs to this load from here on. */
export interface LoadAdmitted {
  readonly kind: 'load-admitted';
  readonly ring: RingName;
  readonly load: LoadId;
  /** Salted digest that ties the load to its generation (G4). */
  readonly generationDigest: { readonly salt: string; readonly hash: string };
  readonly planDigest: string;
  /** This agent's share of the plan as canonical JSON. */
  readonly assignment: string;
}

/** G6: a load that stands was told again, with other terms: these are its own from here on. */
export interface LoadTold extends LoadTerms {
  readonly kind: 'load-told';
  readonly load: LoadId;
}

/** What may change while a load stands. */
export interface LoadTerms {
  /** How long its requests wait for what was lost (R1). */
  readonly deadlineSeconds: number;
  /** Where the agent of each stage is reached, by number of the stage. */
  readonly addresses: readonly AgentAddress[];
}

export interface AgentAddress {
  readonly address: string;
  readonly port: number;
}

export interface NodeChanged {
  readonly kind: 'node-changed';
  readonly load: LoadId;
  readonly node: NodeIndex;
  readonly to: 'loaded' | 'lost' | 'stopped';
  /** For `lost`: why, as an error code and its facts. */
  readonly reason: string | null;
}

/** The first is the load's success, each later one the end of a loss. */
export interface RingReady {
  readonly kind: 'ring-ready';
  readonly load: LoadId;
}

/** R1: the ring lost a stage, a link or an agent; its requests wait. */
export interface RingSuspended {
  readonly kind: 'ring-suspended';
  readonly load: LoadId;
  /** The error on one line. */
  readonly reason: string;
}

export interface LoadEnded {
  readonly kind: 'load-ended';
  readonly load: LoadId;
  /** `forget`: by root on the host, without the generation (G7). */
  readonly by: 'unload' | 'failed-load' | 'forget';
}

export interface SessionOpened {
  readonly kind: 'session-opened';
  readonly load: LoadId;
  readonly session: SessionId;
  readonly slot: SlotIndex;
}

export interface SessionClosed {
  readonly kind: 'session-closed';
  readonly load: LoadId;
  readonly session: SessionId;
}

export interface RequestAdmitted {
  readonly kind: 'request-admitted';
  readonly load: LoadId;
  readonly session: SessionId;
  readonly request: RequestId;
  readonly prompt: readonly TokenId[];
  /**
   * Rows of the prompt that were adopted, as lengths of stretches that first ran by turns in company and alone (R3). Absent
   * where none were.
   */
  readonly adopted?: readonly number[];
  readonly sampling: Sampling;
  readonly stopStrings: readonly string[];
  readonly maxTokens: number;
  readonly ignoreEnd: boolean;
}

/** J7, J8: committed before any reader sees the token. */
export interface TokenEmitted {
  readonly kind: 'token-emitted';
  readonly load: LoadId;
  readonly session: SessionId;
  readonly request: RequestId;
  /** Index of the token in the completion, from 0. */
  readonly index: number;
  readonly token: TokenId;
  /** Whether the row that drew it ran in a frame of its own: it will again after a loss (R3). */
  readonly alone: boolean;
}

export interface RequestEnded {
  readonly kind: 'request-ended';
  readonly load: LoadId;
  readonly session: SessionId;
  readonly request: RequestId;
  readonly reason: FinishReason;
  readonly detail: string;
  /** Tokens in the session when the request was admitted, its prompt with them. */
  readonly promptTokens: number;
  /** Rows of them that were there already (S2). */
  readonly reused: number;
  /** What the session holds after it: tokens, and of how many of them the rows have run. */
  readonly heldTokens: number;
  readonly heldRows: number;
  /** Whether the last of those rows ran in a frame of its own: no draw from it may have told so (R3). */
  readonly alone: boolean;
}

/** S3: exactly one for a request. */
export interface RequestSettled {
  readonly kind: 'request-settled';
  readonly load: LoadId;
  readonly session: SessionId;
  readonly request: RequestId;
  readonly receipts: readonly KeptReceipt[];
  readonly emitted: number;
}

/** A hop that left this agent (E3): a trail for people, exempt from J2; losing some is harmless. */
export interface HopTrail {
  readonly load: LoadId;
  readonly from: NodeIndex;
  readonly to: NodeIndex;
  /** Number of the frame on its link, from 1. */
  readonly frame: bigint;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32c: number;
}

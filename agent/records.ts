/**
 * What an agent writes down: the durable facts from which it can say, after any crash, what it admitted.
 *
 * A record names its load by load id, never by generation (G4). Token ids are kept; prompts as text are not.
 */
import type { LoadId, NodeIndex, RequestId, RingName, SessionId, SlotIndex, TokenId } from '../protocol/ids.ts';
import type { Sampling } from '../protocol/sampling.ts';
import type { Receipt } from '../protocol/hop-items.ts';

/** A receipt as it is kept: without its generation (G4). */
export type KeptReceipt = Omit<Receipt, 'sourceGeneration'>;

export type JournalRecord =
  | LoadAdmitted
  | NodeChanged
  | RingReady
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

export interface NodeChanged {
  readonly kind: 'node-changed';
  readonly load: LoadId;
  readonly node: NodeIndex;
  readonly to: 'loaded' | 'lost' | 'stopped';
  /** For `lost`: why, as an error code and its facts. */
  readonly reason: string | null;
}

export interface RingReady {
  readonly kind: 'ring-ready';
  readonly load: LoadId;
}

export interface LoadEnded {
  readonly kind: 'load-ended';
  readonly load: LoadId;
  readonly by: 'unload' | 'failed-load' | 'restart';
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
  readonly sampling: Sampling;
  readonly stopStrings: readonly string[];
  readonly maxTokens: number;
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
}

export interface RequestEnded {
  readonly kind: 'request-ended';
  readonly load: LoadId;
  readonly session: SessionId;
  readonly request: RequestId;
  /** A finish reason of `protocol/finish.ts`. */
  readonly reason: string;
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

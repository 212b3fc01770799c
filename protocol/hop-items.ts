/**
 * What travels round a ring, in one order for every stage: a frame is a list of items.
 *
 * Every stage applies the items of a frame in order and passes them on, so all stages hold the same KV leases at the
 * same point of the stream. `rows` become a token at the tail; all other items come back to the head as they left it,
 * which tells the head that every stage has applied them; `end` collects each stage's receipt on the way.
 */
import type { Generation, KeptIndex, NodeIndex, RequestId, SessionId, SlotIndex, TokenId } from './ids.ts';
import type { Sampling } from './sampling.ts';

export type HopItem = LeaseItem | BeginItem | RowsItem | EndItem | TokenItem | FailedItem | ProbeItem;

/** What becomes of a sequence of the KV cache. */
export type LeaseItem = OpenItem | AdoptItem | TruncateItem | CloseItem | KeepItem | DropItem;

/** Opens a session's KV lease: sequence `slot` is its own from here to its `close` or `keep`. */
export interface OpenItem {
  readonly kind: 'open';
  readonly session: SessionId;
  readonly slot: SlotIndex;
}

/** Before its first request, a session without rows begins with the first rows of a kept prefix. */
export interface AdoptItem {
  readonly kind: 'adopt';
  readonly session: SessionId;
  readonly slot: SlotIndex;
  readonly kept: KeptIndex;
  readonly length: number;
  /** Whether the prefix is the session's own from then on. Else it stays, and the session has the rows besides. */
  readonly takes: boolean;
}

/** Begins a request: the tail builds its sampler; every stage starts a receipt. */
export interface BeginItem {
  readonly kind: 'begin';
  readonly session: SessionId;
  readonly request: RequestId;
  readonly slot: SlotIndex;
  /** Rows of the prompt whose KV is already there on every stage (S2). */
  readonly reusedRows: number;
  readonly sampling: Sampling;
  /** Rows of this request that ran before a loss; its receipts go on from there (S2). */
  readonly ran: RanRows;
  /** Tokens the penalties have to know although no prefilled row brings them: oldest first. */
  readonly history: readonly TokenId[];
  /** Tokens that this request drew before a loss: the tail's sampler takes them as drawn (X3). */
  readonly drawn: readonly TokenId[];
}

/** Rows that the head knows to have run, whatever became of the stages that ran them. */
export interface RanRows {
  readonly prefilled: number;
  readonly decoded: number;
}

export const nothingRan: RanRows = { prefilled: 0, decoded: 0 };

/** Consecutive rows of one session. Their token ids stand in the frame's `tokens`, their hidden state in `hidden`. */
export interface RowsItem {
  readonly kind: 'rows';
  readonly session: SessionId;
  readonly request: RequestId;
  readonly slot: SlotIndex;
  /** 0 for the prompt's rows; k for the row of the token with index k - 1. */
  readonly step: number;
  /** Position of the first row in its session, from 0. */
  readonly firstPosition: number;
  readonly rowCount: number;
  /** `recompute`: the rows ran before a loss, and only their KV is wanted; they never sample. */
  readonly phase: RowsPhase;
  /** Whether the tail draws a token from the last row's logits. */
  readonly samples: boolean;
  /** Whether every stage decodes it by itself: it then has the shape that it had before a loss (R3). */
  readonly alone: boolean;
}
export const rowsPhases = ['prefill', 'decode', 'recompute'] as const;
export type RowsPhase = (typeof rowsPhases)[number];

/** Drops the KV of a session from a position on. */
export interface TruncateItem {
  readonly kind: 'truncate';
  readonly session: SessionId;
  readonly slot: SlotIndex;
  readonly length: number;
}

/** Ends a request and collects the receipts (S2, S3). */
export interface EndItem {
  readonly kind: 'end';
  readonly session: SessionId;
  readonly request: RequestId;
  readonly receipts: readonly Receipt[];
  /** What a stage says of a request that it does not know: one that ended before a loss. Else `null`. */
  readonly ran: (RanRows & { readonly reused: number }) | null;
}

/** Ends a session's KV lease. */
export interface CloseItem {
  readonly kind: 'close';
  readonly session: SessionId;
  readonly slot: SlotIndex;
}

/** Ends a session's KV lease, and keeps its rows for sessions that begin alike. */
export interface KeepItem {
  readonly kind: 'keep';
  readonly session: SessionId;
  readonly slot: SlotIndex;
  readonly kept: KeptIndex;
  /** Rows that stay. A stage that has dropped some of them says so: it lowers this to what it has. */
  readonly length: number;
}

/** Forgets a kept prefix. */
export interface DropItem {
  readonly kind: 'drop';
  readonly kept: KeptIndex;
}

/** The tail's draw for one step. */
export interface TokenItem {
  readonly kind: 'token';
  readonly session: SessionId;
  readonly request: RequestId;
  /** Index of the token in the completion, from 0. */
  readonly step: number;
  readonly token: TokenId;
}

/** A stage could not run a request's rows; the head ends the request. */
export interface FailedItem {
  readonly kind: 'failed';
  readonly session: SessionId;
  readonly request: RequestId;
  readonly node: NodeIndex;
  readonly why: FailedWhy;
}
export const failedWhys = ['kv-cache-full', 'grammar-dead-end', 'grammar-invalid', 'sampling-invalid'] as const;
export type FailedWhy = (typeof failedWhys)[number];

/** Goes round once before a load is ready (A3): one row in a reserved sequence, no session, no settlement (S3). */
export interface ProbeItem {
  readonly kind: 'probe';
  readonly nonce: number;
}

/** What one stage says it ran for one request: token rows, padding apart (S2). */
export interface Receipt {
  readonly node: NodeIndex;
  /** Compared with the load's (G5); never stored (G4). */
  readonly sourceGeneration: Generation;
  readonly prefilled: number;
  readonly decoded: number;
  readonly reused: number;
  readonly recomputed: number;
  readonly padding: number;
  /** The request's share, by rows, of the time of the decodes that held its rows, in microseconds; at most 2^32 - 1. */
  readonly computeUs: number;
}

/** Calls that wait for the agent's decision: a number goes into `step` with the input and comes back with the reply. */
import type { P4Error } from '../protocol/errors.ts';
import type { FinishReason } from '../protocol/finish.ts';
import type { HostName, NodeIndex, RequestId, SessionId } from '../protocol/ids.ts';
import type { KeptReceipt } from './records.ts';

declare const brand: unique symbol;
export type CallId = number & { readonly [brand]: 'CallId' };

export type CallReply =
  | { readonly kind: 'refused'; readonly error: P4Error }
  /** `confirmed`: everything stood already (G6). */
  | { readonly kind: 'loaded'; readonly confirmed: boolean }
  | { readonly kind: 'linked'; readonly links: readonly LinkedEdge[] }
  | { readonly kind: 'probed'; readonly roundMs: number }
  | { readonly kind: 'unloaded'; readonly stages: number }
  | { readonly kind: 'session-opened'; readonly session: SessionId; readonly contextTokens: number }
  | { readonly kind: 'submitted'; readonly request: RequestId; readonly promptTokens: number }
  | { readonly kind: 'session-closed' }
  | { readonly kind: 'cancelled'; readonly wasRunning: boolean }
  | { readonly kind: 'settlement'; readonly settlement: SettlementState };

export interface LinkedEdge {
  readonly source: NodeIndex;
  readonly destination: NodeIndex;
  readonly address: string;
  readonly peer: HostName;
}

export type SettlementState =
  | { readonly kind: 'running' }
  /** Its receipts are on their way, or wait for the ring. */
  | { readonly kind: 'ending' }
  | {
      readonly kind: 'settled';
      readonly reason: FinishReason;
      readonly receipts: readonly KeptReceipt[];
      readonly emitted: number;
    };

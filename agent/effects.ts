/**
 * What `step` wants done, as data; the shell does it.
 *
 * An effect that the table below calls `committed` runs only when the records of its step, and of all steps before it,
 * are durable (J2, J8). Compute does not wait for the journal (J7): frames go out at once.
 */
import type { P4Error } from '../protocol/errors.ts';
import type { HostName, NodeIndex, LoadId, RingName, TokenId } from '../protocol/ids.ts';
import type { StageLoad } from '../protocol/stage-control.ts';
import type { CallId, CallReply } from './calls.ts';
import type { FrameDraft } from './head/schedule.ts';
import type { RequestAddress, RequestEnd } from './inputs.ts';
import type { EdgeAddress } from './links/link.ts';

export type Effect =
  | { readonly kind: 'reply'; readonly call: CallId; readonly reply: CallReply }
  | StartStage
  | ({ readonly kind: 'stop-stage'; readonly incarnation: number } & StageOf)
  | {
      readonly kind: 'dial-links';
      readonly ring: RingName;
      readonly load: LoadId;
      readonly edges: readonly DialledEdge[];
    }
  /** Agents whose edges lead to `source`, or to a node before it, hear that a stage loads behind it (R1). */
  | ({ readonly kind: 'tell-loading'; readonly source: NodeIndex } & LoadOf)
  /** Makes a stage that lives empty by a new connection; `stage-loaded` follows, or `stage-lost`. */
  | ({ readonly kind: 'attach-stage'; readonly incarnation: number } & StageOf)
  /** Closes every link and route of the ring on this host; the agents before it in the ring are told why. */
  | { readonly kind: 'cut-ring'; readonly ring: RingName; readonly load: LoadId; readonly error: P4Error }
  | ({ readonly kind: 'send-frame'; readonly ring: RingName; readonly load: LoadId } & FrameDraft)
  | ({ readonly kind: 'await-probe'; readonly nonce: number } & LoadOf)
  | ({
      readonly kind: 'await-retry';
      readonly suspension: number;
      readonly attempt: number;
      readonly ms: number;
    } & LoadOf)
  | ({ readonly kind: 'await-deadline'; readonly suspension: number; readonly ms: number } & LoadOf)
  /** A session that nobody holds: it is closed unless somebody takes its lease up. */
  | { readonly kind: 'await-lease'; readonly of: Omit<RequestAddress, 'request'> }
  /** Readers of the load's running requests are told that those wait, for `ms` more at most, and when they go on. */
  | ({ readonly kind: 'publish-pause'; readonly error: P4Error; readonly ms: number } & LoadOf)
  | ({ readonly kind: 'publish-resume' } & LoadOf)
  /** A request is admitted: readers may gather from it. */
  | { readonly kind: 'publish-begin'; readonly of: RequestAddress }
  | {
      readonly kind: 'publish-token';
      readonly of: RequestAddress;
      readonly index: number;
      readonly token: TokenId;
      readonly text: string;
    }
  | { readonly kind: 'publish-end'; readonly of: RequestAddress; readonly end: RequestEnd }
  /** A session ended here: whoever holds its lease is told. */
  | { readonly kind: 'end-lease'; readonly of: Omit<RequestAddress, 'request'> }
  /** A slot is free for a call that waits for one; a step of its own, since the journal may refuse the session. */
  | ({ readonly kind: 'serve-queue'; readonly call: CallId } & LoadOf);

interface LoadOf {
  readonly ring: RingName;
  readonly load: LoadId;
}

interface StageOf extends LoadOf {
  readonly node: NodeIndex;
}

export interface StartStage {
  readonly kind: 'start-stage';
  readonly incarnation: number;
  readonly order: {
    readonly ring: RingName;
    readonly load: LoadId;
    readonly node: NodeIndex;
    /** All that the stage is told but its slice's path, which the shell knows. */
    readonly stage: Omit<StageLoad, 'slicePath'>;
  };
}

export interface DialledEdge extends EdgeAddress {
  readonly host: HostName;
  readonly address: string;
  readonly port: number;
}

export type EffectKind = Effect['kind'];

export const effectTiming: Readonly<Record<EffectKind, 'committed' | 'immediate'>> = {
  reply: 'committed',
  'start-stage': 'committed',
  'stop-stage': 'immediate',
  'attach-stage': 'immediate',
  'dial-links': 'committed',
  'cut-ring': 'immediate',
  'tell-loading': 'immediate',
  'send-frame': 'immediate',
  'await-probe': 'immediate',
  'await-retry': 'immediate',
  'await-deadline': 'immediate',
  'await-lease': 'immediate',
  'publish-pause': 'immediate',
  'publish-resume': 'committed',
  'publish-begin': 'committed',
  'publish-token': 'committed',
  'publish-end': 'committed',
  'end-lease': 'committed',
  'serve-queue': 'committed',
};

/**
 * One direction of a ring edge between two agents: frames go out, acknowledgements come back (E3, E4, E5).
 *
 * A link keeps no queue: the router sends only while fewer than `limits.linkWindowFrames` are unacknowledged.
 */
import type { P4Error } from '../../protocol/errors.ts';
import type { Generation, HostName, NodeIndex, RingName } from '../../protocol/ids.ts';
import type { ReceivingMeter } from '../metrics/link-meter.ts';

export interface EdgeAddress {
  readonly ring: RingName;
  readonly generation: Generation;
  readonly source: NodeIndex;
  readonly destination: NodeIndex;
}

export interface Link {
  readonly edge: EdgeAddress;
  /** The receiver's host, proved by its certificate. */
  readonly peer: HostName;
  readonly address: string;
  /**
   * Takes the frame's bytes; the caller does not touch them again.
   * @returns their CRC32C (E3)
   */
  send(frame: Uint8Array<ArrayBuffer>): number;
  stats(): LinkStats;
  close(): void;
}

export interface LinkStats {
  readonly frames: number;
  readonly bytes: number;
  readonly bytesAcknowledged: number;
  readonly unacknowledged: number;
  /** Milliseconds from `send` to acknowledgement, over the latest frames; 0 while there are none. */
  readonly ackP50Ms: number;
  readonly ackP99Ms: number;
}

export interface LinkEvents {
  /** `count` more frames are finished by the receiver. */
  acknowledged(count: number): void;
  /** The receiver's agent tells that a stage loads from there on (R1). */
  loading(): void;
  /** Called once, unless `close` was called before. */
  lost(error: P4Error): void;
}

/** What the receiving agent makes of an incoming edge. */
export type EdgeAnswer =
  | { readonly kind: 'refused'; readonly error: P4Error }
  | {
      readonly kind: 'accepted';
      /** `finished` is called once, when the node has finished the frame: it becomes the acknowledgement. */
      receive(frame: Uint8Array<ArrayBuffer>, finished: () => void): void;
      closed(error: P4Error | null): void;
      /** Takes what tells the sender that a stage loads from here on; called once, when frames may come. */
      onLoading(tell: () => void): void;
      readonly meter?: ReceivingMeter | null;
      /** Aborted with a P4Error when the node takes no more: the sender is told why. */
      readonly gone: AbortSignal;
    };

/** Decides about an incoming edge from `peer`, the host its certificate names. */
export type EdgeGate = (edge: EdgeAddress, peer: HostName) => EdgeAnswer;

/** What is counted of the links of a ring, on either end; it outlives a link that is dialled again. */
import { metricTable } from '../../protocol/metric-table.ts';
import { limits } from '../../protocol/limits.ts';
import { DurationCounts } from './duration-counts.ts';

export interface EdgeEnds {
  readonly source: number;
  readonly destination: number;
  /** The host at the other end. */
  readonly peer: string;
}

/** At the sender. Times are of one clock that only goes forward, in milliseconds. */
export class SendingMeter {
  readonly ends: EdgeEnds;
  frames = 0;
  bytes = 0;
  /** On their way. */
  unacknowledged = 0;
  readonly acknowledgements = new DurationCounts(metricTable.p4_link_acknowledgement_seconds.buckets);
  #fullSeconds = 0;
  #fullSinceMs = 0;

  constructor(ends: EdgeEnds) {
    this.ends = ends;
  }

  /** @param unacknowledged frames on their way, this one with them */
  sent(bytes: number, unacknowledged: number, nowMs: number): void {
    this.frames += 1;
    this.bytes += bytes;
    this.unacknowledged = unacknowledged;
    if (unacknowledged >= limits.linkWindowFrames) this.#fullSinceMs = nowMs;
  }

  /** A frame that did not wait for a stage to load was finished after `ms`. */
  acknowledged(ms: number): void {
    this.acknowledgements.add(ms / 1000);
  }

  /** Frames were finished, or are lost with their link: `unacknowledged` are left on their way. */
  moved(unacknowledged: number, nowMs: number): void {
    this.unacknowledged = unacknowledged;
    if (unacknowledged >= limits.linkWindowFrames) return;
    if (this.#fullSinceMs === 0) return;
    this.#fullSeconds += (nowMs - this.#fullSinceMs) / 1000;
    this.#fullSinceMs = 0;
  }

  fullSeconds(nowMs: number): number {
    return this.#fullSeconds + (this.#fullSinceMs === 0 ? 0 : (nowMs - this.#fullSinceMs) / 1000);
  }
}

/** At the receiver. */
export class ReceivingMeter {
  readonly ends: EdgeEnds;
  frames = 0;
  bytes = 0;
  heldSeconds = 0;

  constructor(ends: EdgeEnds) {
    this.ends = ends;
  }

  received(bytes: number): void {
    this.frames += 1;
    this.bytes += bytes;
  }

  finished(ms: number): void {
    this.heldSeconds += ms / 1000;
  }
}

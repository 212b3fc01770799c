/** The frames of a link that are on their way, and how long the latest ones took to be acknowledged. */
import type { SendingMeter } from '../metrics/link-meter.ts';
import { AckTimes } from './ack-times.ts';

interface SentFrame {
  readonly bytes: number;
  /** `null` once the receiver has told that it waits for a stage: that time is not the link's. */
  readonly atMs: number | null;
}

/** Times are of one clock that only goes forward, in milliseconds. */
export class SentFrames {
  readonly ackTimes = new AckTimes();
  readonly #meter: SendingMeter | null;
  /** Oldest first. */
  #unacknowledged: SentFrame[] = [];

  constructor(meter: SendingMeter | null = null) {
    this.#meter = meter;
  }

  get count(): number {
    return this.#unacknowledged.length;
  }

  add(bytes: number, atMs: number): void {
    this.#unacknowledged.push({ bytes, atMs });
  }

  /** The receiver waits for a stage: what is on its way is no measure of the link any more. */
  wait(): void {
    this.#unacknowledged = this.#unacknowledged.map(({ bytes }) => ({ bytes, atMs: null }));
  }

  /** The oldest `count` are acknowledged. @returns their bytes */
  acknowledge(count: number, nowMs: number): number {
    let acknowledged = 0;
    for (const { bytes, atMs } of this.#unacknowledged.splice(0, count)) {
      if (atMs !== null) {
        this.ackTimes.add(nowMs - atMs);
        this.#meter?.acknowledged(nowMs - atMs);
      }
      acknowledged += bytes;
    }
    return acknowledged;
  }
}

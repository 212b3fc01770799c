/**
 * A short burst over a connection. Its receiver decides when it is over and how fast it was, since only there the bytes
 * have crossed the network: what a sender has written may still wait in its kernel.
 */
import { randomFillSync } from 'node:crypto';
import { limits } from '../../protocol/limits.ts';
import { WireError, type Wire } from './wire.ts';

/** Random, so that a tunnel that compresses is not taken for a fast network; made when a burst is first sent. */
let chunk: Buffer | null = null;
const chunkBytes = 256 * 1024;
/** Share of a burst that is not counted: TCP is still finding its speed, and shapers give a first amount for free. */
const warmUp = 0.3;

/** Turns arrivals into a rate; knows no clock. */
export class BurstMeter {
  readonly #burstMs: number;
  readonly #burstBytes: number;
  #startedAtMs: number | null = null;
  /** The first arrival past the warm-up: counting begins behind it. */
  #mark: { readonly atMs: number; readonly bytes: number } | null = null;
  #lastAtMs = 0;
  #bytes = 0;

  constructor(burstMs = limits.probeBurstMs, burstBytes = limits.probeBurstBytes) {
    this.#burstMs = burstMs;
    this.#burstBytes = burstBytes;
  }

  /** When the burst is over, `null` before its first byte. */
  get endsAtMs(): number | null {
    return this.#startedAtMs === null ? null : this.#startedAtMs + this.#burstMs;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#burstBytes;
  }

  add(bytes: number, atMs: number): void {
    this.#startedAtMs ??= atMs;
    this.#bytes += bytes;
    this.#lastAtMs = atMs;
    const isWarm = atMs - this.#startedAtMs >= this.#burstMs * warmUp || this.#bytes >= this.#burstBytes * warmUp;
    if (isWarm) this.#mark ??= { atMs, bytes: this.#bytes };
  }

  /** @param atMs now; what did not arrive until then counts as slowness */
  bytesPerSecond(atMs: number): number {
    const end = this.isFull ? this.#lastAtMs : Math.max(atMs, this.#lastAtMs);
    const from = this.#mark ?? { atMs: this.#startedAtMs ?? end, bytes: 0 };
    const isMeasured = this.#bytes > from.bytes && end > from.atMs;
    const begin = isMeasured ? from : { atMs: this.#startedAtMs ?? end, bytes: 0 };
    return ((this.#bytes - begin.bytes) * 1000) / Math.max(end - begin.atMs, 1);
  }
}

/**
 * Takes a burst until its time or its bytes are over.
 *
 * @returns bytes a second
 * @throws WireError `timed-out` when none comes; `closed`
 */
export async function takeBurst(wire: Wire): Promise<number> {
  const meter = new BurstMeter();
  const firstUntilMs = performance.now() + limits.probeAnswerMs;
  while (!meter.isFull) {
    const arrived = await wire.some(meter.endsAtMs ?? firstUntilMs);
    const nowMs = performance.now();
    if (arrived === null) break;
    meter.add(arrived.length, nowMs);
    if (nowMs >= (meter.endsAtMs ?? nowMs)) break;
  }
  if (meter.endsAtMs === null) throw new WireError('timed-out');
  return meter.bytesPerSecond(performance.now());
}

/**
 * Sends until the receiver closes, answers or the bytes are through. Takes no longer than a burst and an answer may.
 *
 * @param isOver whether the receiver has had enough
 */
export async function sendBurst({ socket }: Wire, isOver: () => boolean): Promise<void> {
  chunk ??= randomFillSync(Buffer.allocUnsafeSlow(chunkBytes));
  const untilMs = performance.now() + limits.probeAnswerMs + limits.probeBurstMs;
  for (let sent = 0; sent < limits.probeBurstBytes && performance.now() < untilMs; sent += chunk.length) {
    if (isOver() || socket.destroyed) return;
    if (!socket.write(chunk)) await writable(socket, untilMs);
  }
}

function writable(socket: Wire['socket'], untilMs: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      socket.off('drain', done).off('close', done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(0, untilMs - performance.now()));
    socket.once('drain', done).once('close', done);
  });
}

/**
 * What is counted of one load of a ring on this host. The hot path only adds numbers here.
 *
 * Requests that began before this agent did have no beginning here: their tokens and ends count, their times do not.
 */
import type { FinishReason } from '../../protocol/finish.ts';
import type { LoadId, NodeIndex, RequestId, RingName } from '../../protocol/ids.ts';
import type { HopItem } from '../../protocol/hop-items.ts';
import { metricTable } from '../../protocol/metric-table.ts';
import type { SpeedReading } from '../../protocol/speed-level.ts';
import type { RequestAdmitted, RequestEnded } from '../records.ts';
import { DurationCounts } from './duration-counts.ts';
import { FirstHour } from './first-hour.ts';
import { ReceivingMeter, SendingMeter, type EdgeEnds } from './link-meter.ts';

/** All of one clock that only goes forward, in milliseconds; 0 for what has not been. */
interface RequestClock {
  readonly admittedMs: number;
  fedMs: number;
  /** Of the latest token. */
  drawnMs: number;
  /** Of the first one. */
  toldMs: number;
}

export interface RingMeterStart {
  readonly ring: RingName;
  readonly load: LoadId;
  /** Requests that run already. */
  readonly running: number;
  readonly nowMs: number;
}

export class RingMeter {
  readonly ring: RingName;
  readonly load: LoadId;
  promptTokens = 0;
  reusedTokens = 0;
  adoptedTokens = 0;
  generatedTokens = 0;
  admitted = 0;
  settled = 0;
  suspensions = 0;
  recoveries = 0;
  readonly finished = new Map<FinishReason, number>();
  /** Ends that nobody had asked for, by stage. */
  readonly stageLosses = new Map<NodeIndex, number>();
  readonly firstToken = new DurationCounts(metricTable.p4_ring_time_to_first_token_seconds.buckets);
  readonly interToken = new DurationCounts(metricTable.p4_ring_inter_token_seconds.buckets);
  readonly queue = new DurationCounts(metricTable.p4_ring_queue_seconds.buckets);
  readonly duration = new DurationCounts(metricTable.p4_ring_request_duration_seconds.buckets);
  readonly firstHour = new FirstHour();
  /** By source. */
  readonly sending = new Map<number, SendingMeter>();
  readonly receiving = new Map<number, ReceivingMeter>();
  /** From its admission to its readiness, where this agent saw both. */
  loadSeconds: number | null = null;
  readonly #clocks = new Map<RequestId, RequestClock>();
  readonly #beganMs: number;
  #running: number;
  #countedMs: number;
  #activeSeconds = 0;
  #requestSeconds = 0;
  #suspendedSeconds = 0;
  #suspendedSinceMs: number | null = null;

  constructor({ ring, load, running, nowMs }: RingMeterStart) {
    this.ring = ring;
    this.load = load;
    this.#running = running;
    this.#beganMs = this.#countedMs = nowMs;
  }

  requestAdmitted({ request, adopted = [] }: Pick<RequestAdmitted, 'request' | 'adopted'>, nowMs: number): void {
    this.#count(nowMs);
    this.#running += 1;
    this.admitted += 1;
    this.adoptedTokens += adopted.reduce((sum, length) => sum + length, 0);
    this.#clocks.set(request, { admittedMs: nowMs, fedMs: 0, drawnMs: 0, toldMs: 0 });
  }

  /** A frame of the head goes into its stage. */
  fed(items: readonly HopItem[], nowMs: number): void {
    for (const item of items) {
      if (item.kind !== 'rows' || item.phase !== 'prefill') continue;
      this.promptTokens += item.rowCount;
      const clock = this.#clocks.get(item.request);
      if (clock === undefined || clock.fedMs !== 0) continue;
      clock.fedMs = nowMs;
      this.queue.add((nowMs - clock.admittedMs) / 1000);
    }
  }

  tokenDrawn(request: RequestId, nowMs: number): void {
    const clock = this.#clocks.get(request);
    if (clock === undefined) {
      this.#clocks.set(request, { admittedMs: 0, fedMs: nowMs, drawnMs: nowMs, toldMs: nowMs });
      return;
    }
    if (clock.drawnMs !== 0) this.interToken.add((nowMs - clock.drawnMs) / 1000);
    clock.drawnMs = nowMs;
  }

  tokenDurable(request: RequestId, nowMs: number): void {
    this.generatedTokens += 1;
    const clock = this.#clocks.get(request);
    if (clock === undefined || clock.toldMs !== 0) return;
    this.firstToken.add((nowMs - clock.admittedMs) / 1000);
    clock.toldMs = nowMs;
  }

  requestEnded({ request, reason, reused }: RequestEnded, nowMs: number): void {
    this.#count(nowMs);
    this.#running = Math.max(0, this.#running - 1);
    this.finished.set(reason, (this.finished.get(reason) ?? 0) + 1);
    this.reusedTokens += reused;
    const clock = this.#clocks.get(request);
    if (clock !== undefined && clock.admittedMs !== 0) this.duration.add((nowMs - clock.admittedMs) / 1000);
    this.#clocks.delete(request);
  }

  stageLost(node: NodeIndex): void {
    this.stageLosses.set(node, (this.stageLosses.get(node) ?? 0) + 1);
  }

  /** How the ring stands on this host, whenever that may have changed. */
  stands({ isUp, isSuspended }: { readonly isUp: boolean; readonly isSuspended: boolean }, nowMs: number): void {
    if (isSuspended && this.#suspendedSinceMs === null) {
      this.suspensions += 1;
      this.#suspendedSinceMs = nowMs;
    }
    if (!isSuspended && this.#suspendedSinceMs !== null) {
      this.recoveries += isUp ? 1 : 0;
      this.#suspendedSeconds += (nowMs - this.#suspendedSinceMs) / 1000;
      this.#suspendedSinceMs = null;
    }
    if (isUp && this.suspensions === 0) this.loadSeconds ??= (nowMs - this.#beganMs) / 1000;
  }

  /** Requests of which no row has gone into the ring. */
  get unfed(): number {
    let unfed = 0;
    for (const { fedMs } of this.#clocks.values()) if (fedMs === 0) unfed += 1;
    return unfed;
  }

  suspendedSeconds(nowMs: number): number {
    const since = this.#suspendedSinceMs;
    return this.#suspendedSeconds + (since === null ? 0 : (nowMs - since) / 1000);
  }

  /** Time in which requests ran, and the same added up over them. */
  activity(nowMs: number): { readonly activeSeconds: number; readonly requestSeconds: number } {
    this.#count(nowMs);
    return { activeSeconds: this.#activeSeconds, requestSeconds: this.#requestSeconds };
  }

  /** @param contextShare used share of the KV cache */
  speed(contextShare: number, nowMs: number): SpeedReading {
    const { interToken, promptTokens, generatedTokens } = this;
    const counts = { interTokenSeconds: interToken.sum, interTokens: interToken.count, promptTokens, generatedTokens };
    return { ...counts, ...this.activity(nowMs), contextShare };
  }

  sendingOver(ends: EdgeEnds): SendingMeter {
    const meter = this.sending.get(ends.source) ?? new SendingMeter(ends);
    this.sending.set(ends.source, meter);
    return meter;
  }

  receivingOver(ends: EdgeEnds): ReceivingMeter {
    const meter = this.receiving.get(ends.source) ?? new ReceivingMeter(ends);
    this.receiving.set(ends.source, meter);
    return meter;
  }

  #count(nowMs: number): void {
    const seconds = (nowMs - this.#countedMs) / 1000;
    this.#countedMs = nowMs;
    if (this.#running === 0) return;
    this.#activeSeconds += seconds;
    this.#requestSeconds += seconds * this.#running;
  }
}

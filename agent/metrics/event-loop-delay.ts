/**
 * How late the event loop comes to what is due: a timer that notes by how much it was late.
 *
 * Its own buckets, because the histogram that Node offers for this can be reset or read in quantiles, but not be added up
 * over time and over hosts as Prometheus does. Steps of a millisecond are those of the loop's own clock.
 */
import { limits } from '../../protocol/limits.ts';
import { metricTable } from '../../protocol/metric-table.ts';
import { DurationCounts } from './duration-counts.ts';

export class EventLoopDelay {
  readonly delays = new DurationCounts(metricTable.p4_agent_event_loop_delay_seconds.buckets);
  #dueMs = performance.now() + limits.eventLoopLookMs;
  #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = this.#wait();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #wait(): NodeJS.Timeout {
    return setTimeout(() => {
      const nowMs = performance.now();
      this.delays.add(Math.max(0, nowMs - this.#dueMs) / 1000);
      this.#dueMs = nowMs + limits.eventLoopLookMs;
      this.#timer = this.#wait();
    }, limits.eventLoopLookMs).unref();
  }
}

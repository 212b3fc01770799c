/** For tests of alerts: waiting until one fires, and until it does no more. */
import { setTimeout as pause } from 'node:timers/promises';

import type { Prometheus } from './prometheus.ts';

/** Whether `npm run prove:alerts` runs, which tries every cause. */
export const isLong = process.env['P4_ALERTS'] === 'all';

const lookMs = 500;

export class AlertWatch {
  readonly #prometheus: Prometheus;
  readonly #alert: string;
  /** What it looks at: shown of a wait in vain, and there when it is clear for another reason than that nothing is known. */
  readonly #shown: string;

  constructor(prometheus: Prometheus, alert: string, shown: string) {
    this.#prometheus = prometheus;
    this.#alert = alert;
    this.#shown = shown;
  }

  async fires(): Promise<boolean> {
    return (await this.#prometheus.firing()).includes(this.#alert);
  }

  /** @returns after how many seconds it did */
  untilFires(withinMs: number): Promise<number> {
    return this.#until(true, withinMs);
  }

  /** @returns after how many seconds it did */
  untilClear(withinMs: number): Promise<number> {
    return this.#until(false, withinMs);
  }

  /** Waits until it has been clear for so long without a break. */
  async untilCalm(forMs: number, withinMs: number): Promise<void> {
    const endsAtMs = performance.now() + withinMs;
    let calmSinceMs = performance.now();
    while (performance.now() - calmSinceMs < forMs) {
      await pause(lookMs);
      if (!(await this.#isClear())) calmSinceMs = performance.now();
      if (performance.now() > endsAtMs) throw new Error(`${this.#alert} fires again and again: ${await this.#look()}`);
    }
  }

  /** Fails as soon as it fires. */
  async staysSilent(forMs: number): Promise<void> {
    const endsAtMs = performance.now() + forMs;
    while (performance.now() < endsAtMs) {
      if (await this.fires()) throw new Error(`${this.#alert} fires: ${await this.#look()}`);
      await pause(lookMs);
    }
  }

  async #until(wanted: boolean, withinMs: number): Promise<number> {
    const beganAtMs = performance.now();
    while (!(wanted ? await this.fires() : await this.#isClear())) {
      if (performance.now() - beganAtMs > withinMs) {
        const what = `${this.#alert} ${wanted ? 'fires' : 'clears'}`;
        throw new Error(`not within ${String(withinMs)} ms: ${what}; ${await this.#look()}`);
      }
      await pause(lookMs);
    }
    return Math.round((performance.now() - beganAtMs) / 1000);
  }

  async #isClear(): Promise<boolean> {
    return (await this.#prometheus.query(this.#shown)).length > 0 && !(await this.fires());
  }

  async #look(): Promise<string> {
    const series = await this.#prometheus.query(this.#shown);
    return series.map(({ metric, values }) => `${JSON.stringify(metric)} ${String(values[0]?.[1])}`).join('\n');
  }
}

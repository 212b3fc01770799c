/** What takes a while to make: for a second the latest is good enough, however often it is asked for. */
import { limits } from '../../protocol/limits.ts';

export class Recent<Value> {
  #latest: { readonly atMs: number; readonly value: Promise<Value> } | null = null;

  /** @param make called where the latest is too old */
  of(make: () => Promise<Value>): Promise<Value> {
    const nowMs = performance.now();
    if (this.#latest !== null && nowMs - this.#latest.atMs < limits.metricCacheMs) return this.#latest.value;
    const value = make();
    this.#latest = { atMs: nowMs, value };
    return value;
  }
}

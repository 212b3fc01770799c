/** The latest text of each format, for a second: however often it is asked for, it is made once. */
import { limits } from '../../protocol/limits.ts';
import type { Collection } from './collection.ts';
import { exposition, type ExpositionFormat } from './exposition.ts';

interface Scrape {
  readonly atMs: number;
  readonly text: Promise<string>;
}

export class Scrapes {
  readonly #collection: Collection;
  readonly #latest = new Map<ExpositionFormat, Scrape>();

  constructor(collection: Collection) {
    this.#collection = collection;
  }

  text(format: ExpositionFormat): Promise<string> {
    const nowMs = performance.now();
    const latest = this.#latest.get(format);
    if (latest !== undefined && nowMs - latest.atMs < limits.metricCacheMs) return latest.text;
    const text = this.#made(format);
    this.#latest.set(format, { atMs: nowMs, text });
    return text;
  }

  async #made(format: ExpositionFormat): Promise<string> {
    const { text, spentMs } = await exposition(await this.#collection.gather(), format);
    this.#collection.spentSeconds += spentMs / 1000;
    return text;
  }
}

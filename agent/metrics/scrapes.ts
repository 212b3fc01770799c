/** The latest text of each format, for a second: however often it is asked for, it is made once. */
import type { Collection } from './collection.ts';
import { exposition, type ExpositionFormat } from './exposition.ts';
import { Recent } from './recent.ts';

export class Scrapes {
  readonly #collection: Collection;
  readonly #latest = new Map<ExpositionFormat, Recent<string>>();

  constructor(collection: Collection) {
    this.#collection = collection;
  }

  text(format: ExpositionFormat): Promise<string> {
    const latest = this.#latest.get(format) ?? new Recent<string>();
    this.#latest.set(format, latest);
    return latest.of(() => this.#made(format));
  }

  async #made(format: ExpositionFormat): Promise<string> {
    const { text, spentMs } = await exposition(await this.#collection.gather(), format);
    this.#collection.spentSeconds += spentMs / 1000;
    return text;
  }
}

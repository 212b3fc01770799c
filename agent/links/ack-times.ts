/** How long acknowledgements take, over the latest frames: a ring of samples, sorted only when somebody asks. */
import { limits } from '../../protocol/limits.ts';

export class AckTimes {
  readonly #samplesMs = new Float64Array(limits.linkSamples);
  #count = 0;

  add(ms: number): void {
    this.#samplesMs[this.#count++ % this.#samplesMs.length] = ms;
  }

  /** The nearest-rank quantile in milliseconds, 0 without samples. `share` is above 0 and at most 1. */
  quantile(share: number): number {
    const kept = this.#samplesMs.slice(0, Math.min(this.#count, this.#samplesMs.length)).sort();
    return kept[Math.ceil(share * kept.length) - 1] ?? 0;
  }
}

/** For tests: a ring that is kept busy. */
import type { Ask, LoadedRing } from '../fixture/loaded-ring.ts';

const short = { maxTokens: 24, ignoreEnd: true } as const;
const shortAsks: readonly Ask[] = [
  { prompt: 'Once upon a time', ...short },
  { prompt: 'A small grey cat', ...short },
];

/** Some requests side by side, and after each the same again, until it is told to stop. */
export class RingLoad {
  readonly #done: Promise<unknown>;
  #isOver = false;

  constructor(ring: LoadedRing, asks: readonly Ask[] = shortAsks) {
    const askOn = async (ask: Ask): Promise<void> => {
      while (!this.#isOver) await ring.askAlone(ask);
    };
    this.#done = Promise.all(asks.map(askOn));
    // A failure is told by `stop`.
    this.#done.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }
}

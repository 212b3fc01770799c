/** A bounded rate: each request takes the next place in time. */
export class Pace {
  readonly #stepMs: number;
  #nextMs = 0;

  constructor(perSecond: number) {
    this.#stepMs = 1000 / perSecond;
  }

  /** @returns milliseconds until it is this request's turn, 0 for at once; `null` where that is too far, and no place is taken */
  takeMs(nowMs: number, mostMs: number): number | null {
    const atMs = Math.max(this.#nextMs, nowMs);
    if (atMs - nowMs > mostMs) return null;
    this.#nextMs = atMs + this.#stepMs;
    return atMs - nowMs;
  }
}

/** Simulated time: what is to happen, in the order of its time and, within one moment, of its planning. */
export interface Timer {
  cancel(): void;
}

interface Event {
  readonly atMs: number;
  readonly number: number;
  run: (() => void) | null;
}

export class Clock {
  #nowMs = 0;
  #count = 0;
  /** A binary heap: the next event first. */
  readonly #events: Event[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): Timer {
    const event: Event = { atMs: this.#nowMs + Math.max(0, ms), number: this.#count++, run };
    this.#push(event);
    return {
      cancel: () => {
        event.run = null;
      },
    };
  }

  /** Lets the next thing happen, if it is due by `untilMs`; false when nothing was. */
  turn(untilMs: number): boolean {
    const [next] = this.#events;
    if (next === undefined || next.atMs > untilMs) {
      this.#nowMs = untilMs;
      return false;
    }
    this.#shift();
    this.#nowMs = next.atMs;
    next.run?.();
    return true;
  }

  #push(event: Event): void {
    const heap = this.#events;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(event, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  #shift(): void {
    const heap = this.#events;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      if (left === undefined) break;
      const right = heap[2 * at + 2];
      const isRight = right !== undefined && isBefore(right, left);
      const child = isRight ? right : left;
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = 2 * at + (isRight ? 2 : 1);
    }
    heap[at] = last;
  }
}

const isBefore = (one: Event, other: Event): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.number < other.number);

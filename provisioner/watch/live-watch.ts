/** A live picture: a look, a drawing, a wait; keys and a new size draw at once. */
import type { ReadStream, WriteStream } from 'node:tty';

import { limits } from '../../protocol/limits.ts';
import type { Plan } from '../../protocol/plan.ts';
import { interruption } from '../interrupt.ts';
import type { Look } from './look.ts';
import { ringPicture, scrollMost } from './ring-picture.ts';
import { Screen } from './screen.ts';
import type { Style } from './styled-line.ts';
import { afterKeys, type LiveState } from './watch-keys.ts';
import { beginWatch, takeLook, viewOf, type RingView, type WatchState } from './watch-state.ts';

export interface LiveOrder {
  readonly plan: Plan;
  readonly intervalSeconds: number;
  /** One look; agents that do not answer within these milliseconds are silent in it. */
  readonly look: (withinMs: number) => Promise<Look>;
  readonly output: WriteStream & { readonly fd: number };
  readonly input: ReadStream | null;
  readonly style: Style;
  readonly canMove: boolean;
  readonly signal: AbortSignal;
}

export class LiveWatch {
  readonly #order: LiveOrder;
  #watch: WatchState;
  #live: LiveState;
  #screen: Screen | null = null;
  /** Ends the wait that is under way. */
  #wake: () => void = () => undefined;

  private constructor(order: LiveOrder) {
    this.#order = order;
    this.#watch = beginWatch(order.plan);
    const { intervalSeconds } = order;
    this.#live = { intervalSeconds, isPaused: false, hasHelp: false, scroll: 0, isOver: false };
  }

  /** Returns when the user has had enough. @throws the signal's reason; what a look throws */
  static async run(order: LiveOrder): Promise<void> {
    const watch = new LiveWatch(order);
    // Before the screen is taken: ssh may ask for a passphrase, and a first answer takes longer.
    const first = await order.look(limits.answerMs);
    watch.#open();
    try {
      watch.#take(first);
      await watch.#go();
    } finally {
      watch.#screen?.close();
    }
  }

  async #go(): Promise<void> {
    const { signal, look } = this.#order;
    const aborted = (): void => {
      this.#wake();
    };
    signal.addEventListener('abort', aborted);
    try {
      for (;;) {
        await this.#untilNext();
        if (signal.aborted) throw interruption(signal);
        if (this.#live.isOver) return;
        const taken = await Promise.race([look(limits.watchAnswerMs), this.#untilOver()]);
        if (taken !== null && !this.#live.isPaused) this.#take(taken);
      }
    } finally {
      signal.removeEventListener('abort', aborted);
    }
  }

  #open(): void {
    const { output, input, canMove } = this.#order;
    this.#screen = Screen.open({
      ...{ output, input, canMove },
      onKeys: (keys) => {
        this.#press(keys);
      },
      onResize: () => {
        this.#draw();
      },
    });
  }

  #press(keys: string): void {
    const view = this.#view();
    this.#live = afterKeys(this.#live, keys, view === null ? 0 : scrollMost(view));
    this.#draw();
    this.#wake();
  }

  #take(look: Look): void {
    this.#watch = takeLook(this.#watch, look);
    this.#draw();
  }

  #view(): RingView | null {
    return viewOf(this.#watch);
  }

  #draw(): void {
    const view = this.#view();
    if (view === null) return;
    const { output, style, canMove } = this.#order;
    const height = canMove && output.rows > 0 ? output.rows : null;
    const paper = { style, width: output.columns > 0 ? output.columns : 80, height };
    this.#screen?.draw(ringPicture(view, paper, this.#live));
  }

  /** Waits for the interval's end, as long as it is by then; for as long as it is paused. */
  async #untilNext(): Promise<void> {
    const sinceMs = performance.now();
    for (;;) {
      const { intervalSeconds, isPaused, isOver } = this.#live;
      if (isOver || this.#order.signal.aborted) return;
      const leftMs = sinceMs + intervalSeconds * 1000 - performance.now();
      if (leftMs <= 0 && !isPaused) return;
      await this.#woken(isPaused ? null : leftMs);
    }
  }

  /** Waits until the user has had enough, or the signal. */
  async #untilOver(): Promise<null> {
    while (!this.#live.isOver && !this.#order.signal.aborted) await this.#woken(null);
    return null;
  }

  #woken(withinMs: number | null): Promise<void> {
    return new Promise((resolve) => {
      const timer =
        withinMs === null
          ? undefined
          : setTimeout(() => {
              this.#wake();
            }, withinMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

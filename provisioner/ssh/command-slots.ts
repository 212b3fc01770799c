/** How many commands may run at once on one connection. */
import { assert } from '../../protocol/assert.ts';
import { interruption } from '../interrupt.ts';

export class CommandSlots {
  #most: number;
  #taken = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    assert(most > 0, 'somebody may run');
    this.#most = most;
  }

  /** Lowers the number to what a host has shown to allow. */
  allow(most: number): void {
    this.#most = Math.max(1, Math.min(this.#most, most));
  }

  /**
   * Waits for room, first come first served.
   * @returns what lets the next one in; more than one call of it counts as one
   * @throws CANCELLED
   */
  async take(signal: AbortSignal | undefined): Promise<() => void> {
    if (signal?.aborted === true) throw interruption(signal);
    if (this.#taken >= this.#most || this.#waiting.length > 0) await this.#turn(signal);
    else this.#taken++;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#taken--;
      this.#wake();
    };
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const come = (): void => {
        signal?.removeEventListener('abort', leave);
        // Here and not where it is awaited: nobody comes in between.
        this.#taken++;
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(come), 1);
        if (signal !== undefined) reject(interruption(signal));
      };
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiting.push(come);
    });
  }

  #wake(): void {
    if (this.#taken < this.#most) this.#waiting.shift()?.();
  }
}

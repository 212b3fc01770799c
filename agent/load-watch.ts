/** Progress of loads, for the calls that wait for them. */
import type { LoadId } from '../protocol/ids.ts';
import type { LoadProgress } from '../protocol/messages.ts';

type Listener = (progress: LoadProgress) => void;

export class LoadWatch {
  readonly #listeners = new Map<LoadId, Set<Listener>>();

  /** @returns takes the listener off again */
  on(load: LoadId, listener: Listener): () => void {
    const listeners = this.#listeners.get(load) ?? new Set();
    this.#listeners.set(load, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(load);
    };
  }

  tell(load: LoadId, progress: LoadProgress): void {
    for (const listener of this.#listeners.get(load) ?? []) listener(progress);
  }
}

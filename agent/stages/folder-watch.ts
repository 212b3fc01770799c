/** News of a folder's files, from the kernel: told when a name comes or goes, or a file in it grows. */
import { watch, type FSWatcher } from 'node:fs';

import { P4Error } from '../../protocol/errors.ts';

export class FolderWatch {
  readonly #watcher: FSWatcher;

  /**
   * @param onChange told after each change; it may be told without one, and is not told of what was there before
   * @throws STAGE_RUNTIME_FOLDER when the kernel watches no more folders, or there is none
   */
  constructor(path: string, onChange: () => void) {
    try {
      this.#watcher = watch(path, { persistent: false }, onChange);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new P4Error('STAGE_RUNTIME_FOLDER', { path, reason }, cause);
    }
    // The folder went: there is nothing more to tell.
    this.#watcher.on('error', () => undefined);
  }

  close(): void {
    this.#watcher.close();
  }
}

/**
 * Waits for something in a folder.
 *
 * @param look whether it is there; called at once, then after every change
 * @returns what `look` gave, `null` when the time is over
 * @throws STAGE_RUNTIME_FOLDER
 */
export function awaitInFolder<Found>(path: string, look: () => Found | null, withinMs: number): Promise<Found | null> {
  return new Promise((resolve) => {
    const settle = (found: Found | null): void => {
      clearTimeout(timer);
      watcher.close();
      resolve(found);
    };
    const again = (): void => {
      const found = look();
      if (found !== null) settle(found);
    };
    const watcher = new FolderWatch(path, again);
    const timer = setTimeout(() => {
      settle(look());
    }, withinMs);
    again();
  });
}

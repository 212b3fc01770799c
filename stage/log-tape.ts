/**
 * What llama.cpp says: nothing while it works, its warnings and errors kept while a model or a context is made.
 *
 * A JavaScript callback must not be called from another thread while this one waits in a native call, or both wait for
 * ever. llama.cpp logs from other threads only inside a decode; so the recording callback is installed for the length of a
 * `record`, and at all other times a native function that does nothing is.
 */
import koffi from 'koffi';

import type { NullablePointer, Pointer } from './llama-structs.ts';

/** `enum ggml_log_level`. */
const levels = { warning: 3, error: 4, continued: 5 } as const;

const keptLines = 12;
const keptCharacters = 400;

const logCallback = koffi.proto('void', ['int', 'str', 'void *']);

interface Logger {
  readonly nothing: Pointer;
  readonly logSet: (callback: NullablePointer, userData: null) => void;
}

export class LogTape {
  readonly #logger: Logger;
  #lines: string[] = [];
  #keeps = false;

  constructor(logger: Logger) {
    this.#logger = logger;
    logger.logSet(logger.nothing, null);
  }

  /** Runs `work` and keeps what is said at warning and error level, for `lines`. */
  record<Result>(work: () => Result): Result {
    this.#lines = [];
    const callback = koffi.register((level: number, text: string | null) => {
      this.#keep(level, text ?? '');
    }, koffi.pointer(logCallback));
    this.#logger.logSet(callback, null);
    try {
      return work();
    } finally {
      this.#logger.logSet(this.#logger.nothing, null);
      koffi.unregister(callback);
    }
  }

  /** The last warnings and errors of the last `record`, oldest first, bounded. */
  get lines(): readonly string[] {
    return this.#lines.map((line) => line.trim()).filter((line) => line !== '');
  }

  #keep(level: number, text: string): void {
    if (level === levels.continued) {
      if (this.#keeps) this.#lines.push(((this.#lines.pop() ?? '') + text).slice(0, keptCharacters));
      return;
    }
    this.#keeps = level === levels.warning || level === levels.error;
    if (!this.#keeps) return;
    this.#lines.push(text.slice(0, keptCharacters));
    if (this.#lines.length > keptLines) this.#lines.shift();
  }
}

/** What ends the waiting for a command early: the caller's signal, or its time. */
import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import { interruption, unlessAborted } from '../interrupt.ts';

export class EndWatch {
  readonly #host: HostName;
  readonly #controller = new AbortController();
  readonly #stop: () => void;

  constructor({
    host,
    signal,
    timeoutMs,
  }: {
    host: HostName;
    signal: AbortSignal | undefined;
    timeoutMs: number | undefined;
  }) {
    this.#host = host;
    const abort = (): void => {
      if (signal !== undefined) this.#controller.abort(interruption(signal));
    };
    if (signal?.aborted === true) abort();
    signal?.addEventListener('abort', abort, { once: true });
    const timer = timeoutMs === undefined ? undefined : setTimeout(this.#expire.bind(this, timeoutMs), timeoutMs);
    this.#stop = () => {
      signal?.removeEventListener('abort', abort);
      clearTimeout(timer);
    };
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  of<Value>(work: Promise<Value>): Promise<Value> {
    return unlessAborted(work, this.signal);
  }

  async within<Value>(timeMs: number, work: Promise<Value>): Promise<Value> {
    const timer = setTimeout(this.#expire.bind(this, timeMs), timeMs);
    try {
      return await this.of(work);
    } finally {
      clearTimeout(timer);
    }
  }

  stop(): void {
    this.#stop();
  }

  #expire(timeMs: number): void {
    this.#controller.abort(new P4Error('HOST_TIMEOUT', { host: this.#host, seconds: timeMs / 1000 }));
  }
}

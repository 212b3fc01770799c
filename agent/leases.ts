/**
 * The leases of open sessions: a client holds one by its stream, and is told when the session ends otherwise.
 *
 * A session without a holder goes on for a while: one whose stream broke, or that was open when its agent started again,
 * is taken up by another stream, or expires.
 */
import type { LoadId, SessionId } from '../protocol/ids.ts';

export interface SessionAddress {
  readonly load: LoadId;
  readonly session: SessionId;
}

type LeaseEnd = 'session-ended' | 'let-go' | 'taken-over';

export class Leases {
  readonly #holders = new Map<string, (end: LeaseEnd) => void>();
  readonly #expiries = new Map<string, NodeJS.Timeout>();

  /** Resolves when the session has ended, another stream has taken it over, or `signal` aborts; whichever is first. */
  async held(of: SessionAddress, signal: AbortSignal): Promise<LeaseEnd> {
    const key = keyOf(of);
    this.#holders.get(key)?.('taken-over');
    this.#keep(key);
    let release: (end: LeaseEnd) => void = () => undefined;
    const end = await new Promise<LeaseEnd>((resolve) => {
      release = resolve;
      this.#holders.set(key, resolve);
      const letGo = (): void => {
        resolve('let-go');
      };
      if (signal.aborted) letGo();
      signal.addEventListener('abort', letGo, { once: true });
    });
    if (this.#holders.get(key) === release) this.#holders.delete(key);
    return end;
  }

  /** Calls `expired` after `ms`, unless somebody takes the lease up or the session ends before. */
  expect(of: SessionAddress, ms: number, expired: () => void): void {
    const key = keyOf(of);
    if (this.#holders.has(key)) return;
    this.#keep(key);
    const timer = setTimeout(() => {
      this.#expiries.delete(key);
      expired();
    }, ms);
    this.#expiries.set(key, timer.unref());
  }

  end(of: SessionAddress): void {
    const key = keyOf(of);
    this.#keep(key);
    this.#holders.get(key)?.('session-ended');
  }

  #keep(key: string): void {
    clearTimeout(this.#expiries.get(key));
    this.#expiries.delete(key);
  }
}

const keyOf = ({ load, session }: SessionAddress): string => `${load}.${session}`;

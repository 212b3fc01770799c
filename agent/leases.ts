/** The leases of open sessions: a client holds one by its stream, and is told when the session ends otherwise. */
import type { LoadId, SessionId } from '../protocol/ids.ts';

export interface SessionAddress {
  readonly load: LoadId;
  readonly session: SessionId;
}

export class Leases {
  readonly #holders = new Map<string, () => void>();

  /** Resolves when the session has ended or `signal` aborts, whichever is first. */
  async held(of: SessionAddress, signal: AbortSignal): Promise<'session-ended' | 'let-go'> {
    const key = keyOf(of);
    try {
      return await new Promise((resolve) => {
        this.#holders.set(key, () => {
          resolve('session-ended');
        });
        const letGo = (): void => {
          resolve('let-go');
        };
        if (signal.aborted) letGo();
        signal.addEventListener('abort', letGo, { once: true });
      });
    } finally {
      this.#holders.delete(key);
    }
  }

  end(of: SessionAddress): void {
    this.#holders.get(keyOf(of))?.();
  }
}

const keyOf = ({ load, session }: SessionAddress): string => `${load}.${session}`;

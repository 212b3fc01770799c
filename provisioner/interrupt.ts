/**
 * Why a command is to end early: Ctrl-C, a signal, a closed terminal, or a reader of its output that went away.
 *
 * The first one asks: whoever waits is woken by the abort signal and cleans up. Later ones change nothing, since the
 * cleaning up has its own deadlines.
 */
import process from 'node:process';

import { P4Error } from '../protocol/errors.ts';

/** As a shell reports them: 128 and the signal's number. */
const exitBySignal = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
type EndingSignal = keyof typeof exitBySignal;
export type Interrupter = EndingSignal | 'closed output';
const endingSignals: readonly EndingSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

export class Interrupt {
  readonly #controller = new AbortController();
  #by: Interrupter | null = null;

  /** Listens from here on: nothing may be made before this that would have to be cleaned up. */
  static listen(): Interrupt {
    const interrupt = new Interrupt();
    for (const signal of endingSignals) {
      process.on(signal, () => {
        interrupt.raise(signal);
      });
    }
    // A reader that went away (`| head`) is no failure of the command. Standard error has nobody to tell.
    process.stdout.on('error', () => {
      interrupt.raise('closed output');
    });
    process.stderr.on('error', () => {
      interrupt.raise('closed output');
    });
    return interrupt;
  }

  /** Aborted with a CANCELLED error. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What has interrupted, `null` while nothing has. */
  get by(): Interrupter | null {
    return this.#by;
  }

  raise(by: Interrupter): void {
    if (this.#by !== null) return;
    this.#by = by;
    this.#controller.abort(new P4Error('CANCELLED', { by }));
  }
}

/** The exit status of a command that was cut short. */
export const interruptedExit = (by: Interrupter): number =>
  by === 'closed output' ? new P4Error('CANCELLED').rule.exit : exitBySignal[by];

/** The error that an aborted signal carries. */
export function interruption(signal: AbortSignal): P4Error {
  return signal.reason instanceof P4Error ? signal.reason : new P4Error('CANCELLED', {}, signal.reason);
}

/** Waits for `work`, or for the signal, whichever is first. */
export async function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    const abort = (): void => {
      reject(interruption(signal));
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    stop = () => {
      signal.removeEventListener('abort', abort);
    };
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    stop();
  }
}

/**
 * Why a command is to end early: Ctrl-C, a signal, a closed terminal, a reader of its output that went away, or an output
 * that cannot be written, which is a failure.
 *
 * The first one asks: whoever waits is woken by the abort signal and cleans up. Later ones change nothing, since the
 * cleaning up has its own deadlines.
 */
import process from 'node:process';

import { P4Error } from '../protocol/errors.ts';

/** As a shell reports them: 128 and the signal's number. */
const exitBySignal = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
type EndingSignal = keyof typeof exitBySignal;
export type Interrupter = EndingSignal | 'closed output' | 'failed output';
const endingSignals: readonly EndingSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

interface OutputLoss {
  readonly error: NodeJS.ErrnoException;
  readonly isTerminal: boolean;
}

export class Interrupt {
  readonly #controller = new AbortController();
  #by: Interrupter | null = null;
  #failure: P4Error | null = null;

  /** Listens from here on: nothing may be made before this that would have to be cleaned up. */
  static listen(): Interrupt {
    const interrupt = new Interrupt();
    for (const signal of endingSignals) {
      process.on(signal, () => {
        interrupt.raise(signal);
      });
    }
    for (const [output, stream] of Object.entries({ stdout: process.stdout, stderr: process.stderr })) {
      stream.on('error', (error: NodeJS.ErrnoException) => {
        interrupt.loseOutput(output, { error, isTerminal: stream.isTTY });
      });
    }
    return interrupt;
  }

  /** Aborted with a CANCELLED error, or with OUTPUT_FAILED. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What has interrupted, `null` while nothing has. */
  get by(): Interrupter | null {
    return this.#by;
  }

  /** The failure that has interrupted, `null` where none has. */
  get failure(): P4Error | null {
    return this.#failure;
  }

  raise(by: Exclude<Interrupter, 'failed output'>): void {
    this.#end(by, new P4Error('CANCELLED', { by }));
  }

  /** A reader that went away (`| head`), and a terminal that did, are no failure of the command. */
  loseOutput(output: string, { error, isTerminal }: OutputLoss): void {
    const { code = '' } = error;
    if (code === 'EPIPE' || (code === 'EIO' && isTerminal)) {
      this.raise('closed output');
      return;
    }
    if (this.#by !== null) return;
    this.#failure = new P4Error('OUTPUT_FAILED', { output, why: error.message }, error);
    this.#end('failed output', this.#failure);
  }

  #end(by: Interrupter, reason: P4Error): void {
    if (this.#by !== null) return;
    this.#by = by;
    this.#controller.abort(reason);
  }
}

/** The exit status of a command that was cut short. */
export const interruptedExit = (by: Exclude<Interrupter, 'failed output'>): number =>
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

/**
 * Asking for a password or passphrase: on the terminal itself, whatever standard input and output are, without echo, and
 * one question at a time.
 */
import { openSync, closeSync } from 'node:fs';
import { isatty as isTerminal, ReadStream } from 'node:tty';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { systemCode } from '../../protocol/tls-identity.ts';

export interface SecretPrompt {
  /**
   * @param question without colon or line end
   * @throws SECRET_NOT_GIVEN where there is no terminal, CANCELLED on Ctrl-C, Ctrl-D or the signal
   */
  ask(question: string, signal: AbortSignal): Promise<string>;
}

/** What a key press did to the line. */
export type LineStep =
  | { readonly kind: 'typing'; readonly line: string }
  | { readonly kind: 'done'; readonly line: string }
  | { readonly kind: 'cancelled' };

/** The terminal of the process. */
export class TerminalPrompt implements SecretPrompt {
  readonly #path: string;
  readonly #beforeAsking: () => void;
  /** Settled when the question before has its answer. */
  #former: Promise<unknown> = Promise.resolve();

  /** @param beforeAsking clears what is drawn on the terminal */
  constructor(beforeAsking: () => void = () => undefined, path = '/dev/tty') {
    this.#path = path;
    this.#beforeAsking = beforeAsking;
  }

  ask(question: string, signal: AbortSignal): Promise<string> {
    const mine = this.#former.then(() => this.#askNow(question, signal));
    this.#former = mine.catch(() => undefined);
    return mine;
  }

  async #askNow(question: string, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const descriptor = this.#open(question);
    this.#beforeAsking();
    const terminal = new ReadStream(descriptor);
    try {
      terminal.setRawMode(true);
      return await lineOf(terminal, `${question}: `, signal);
    } finally {
      terminal.setRawMode(false);
      terminal.destroy();
    }
  }

  #open(question: string): number {
    let descriptor: number;
    try {
      descriptor = openSync(this.#path, 'r+');
    } catch (error) {
      throw new P4Error('SECRET_NOT_GIVEN', { question, why: systemCode(error) }, error);
    }
    if (isTerminal(descriptor)) return descriptor;
    closeSync(descriptor);
    throw new P4Error('SECRET_NOT_GIVEN', { question });
  }
}

/** Applies what was typed (or pasted) to a line, key by key. Pure. */
export function typed(line: string, keys: string): LineStep {
  let now = line;
  for (const key of keys) {
    switch (key) {
      case '\r':
      case '\n':
        return { kind: 'done', line: now };
      case '\u0003':
        return { kind: 'cancelled' };
      case '\u0004':
        return now === '' ? { kind: 'cancelled' } : { kind: 'done', line: now };
      case '\u007f':
      case '\b':
        now = Array.from(now).slice(0, -1).join('');
        break;
      case '\u0015':
        now = '';
        break;
      default:
        if (now.length < limits.secretBytes) now += key;
    }
  }
  return { kind: 'typing', line: now };
}

function lineOf(terminal: ReadStream, prompt: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = '';
    const end = (settle: () => void): void => {
      signal.removeEventListener('abort', abort);
      // The cursor leaves the question's line: what was typed did not move it.
      terminal.write('\n', settle);
    };
    const cancel = (error: unknown): void => {
      end(() => {
        reject(error instanceof P4Error ? error : new P4Error('CANCELLED', { by: 'terminal' }, error));
      });
    };
    const abort = (): void => {
      cancel(signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    terminal.setEncoding('utf8');
    terminal.once('error', cancel);
    terminal.once('end', () => {
      cancel(undefined);
    });
    terminal.on('data', (keys: string) => {
      const step = typed(line, keys);
      switch (step.kind) {
        case 'typing':
          line = step.line;
          return;
        case 'done':
          terminal.pause();
          end(() => {
            resolve(step.line);
          });
          return;
        case 'cancelled':
          terminal.pause();
          cancel(undefined);
      }
    });
    terminal.write(prompt);
  });
}

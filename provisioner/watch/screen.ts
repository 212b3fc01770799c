/**
 * The terminal while a live picture is on it: a screen of its own, without cursor, and keys as they are pressed. However the
 * process ends (but by SIGKILL), the terminal is as it was.
 *
 * On a terminal that cannot move its cursor (TERM=dumb), pictures stand one below the other, and nothing else is written.
 */
import { writeSync } from 'node:fs';
import process from 'node:process';
import type { ReadStream, WriteStream } from 'node:tty';

const enter = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const leave = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const toTop = '\x1b[H';
const clearLine = '\x1b[2K';

export interface ScreenOptions {
  readonly output: WriteStream & { readonly fd: number };
  /** `null` where nobody can press a key. */
  readonly input: ReadStream | null;
  /** Whether its cursor can be moved. */
  readonly canMove: boolean;
  readonly onKeys: (keys: string) => void;
  readonly onResize: () => void;
}

export class Screen {
  readonly #options: ScreenOptions;
  readonly #keys = (bytes: Buffer): void => {
    this.#options.onKeys(bytes.toString('utf8'));
  };
  readonly #lastMoment = (): void => {
    this.#restore((text) => writeSync(this.#options.output.fd, text));
  };
  #isOpen = true;

  private constructor(options: ScreenOptions) {
    this.#options = options;
  }

  static open(options: ScreenOptions): Screen {
    const screen = new Screen(options);
    const { output, input, canMove, onResize } = options;
    // A bug's report would be gone with the screen.
    process.on('exit', screen.#lastMoment);
    process.on('uncaughtExceptionMonitor', screen.#lastMoment);
    if (canMove) output.write(enter);
    output.on('resize', onResize);
    input?.setRawMode(true);
    input?.on('data', screen.#keys).resume();
    return screen;
  }

  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const { output, canMove } = this.#options;
    output.write(canMove ? overDrawn(lines, output.rows) : `${lines.join('\r\n')}\r\n\r\n`);
  }

  close(): void {
    const { output, input, onResize } = this.#options;
    this.#restore((text) => output.write(text));
    output.off('resize', onResize);
    input?.off('data', this.#keys).pause();
    process.off('exit', this.#lastMoment);
    process.off('uncaughtExceptionMonitor', this.#lastMoment);
  }

  #restore(write: (text: string) => void): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { input, canMove } = this.#options;
    try {
      input?.setRawMode(false);
      if (canMove) write(leave);
    } catch {
      // The terminal itself is gone: there is nothing to restore.
    }
  }
}

/** Each line is cleared before it is written: behind a full one the cursor still stands on its last column. */
function overDrawn(lines: readonly string[], rows: number): string {
  const all = Array.from({ length: Math.max(rows, lines.length) }, (_none, row) => `${clearLine}${lines[row] ?? ''}`);
  return `${toTop}${all.join('\r\n')}`;
}

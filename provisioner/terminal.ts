/**
 * Where commands print: text for people or, with `--json`, one JSON object a line.
 *
 * Results go to standard output; progress and failures to standard error. Progress is drawn on a terminal only: in a
 * file or a pipe it would be noise.
 */
import type { Writable } from 'node:stream';

import type { P4Error } from '../protocol/errors.ts';

/** A stream that may be a terminal. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export type TerminalMode = 'text' | 'json';

const barCells = 24;
/** Between two drawings of the same progress. */
const redrawMs = 100;
const clearLine = '\r\x1b[2K';

export class Terminal {
  readonly mode: TerminalMode;
  readonly #out: Output;
  readonly #err: Output;
  #drawn: 'nothing' | 'progress' = 'nothing';
  #label = '';
  #drawnAtMs = 0;
  /** Whether the latest part left its line unfinished. */
  #isInLine = false;

  constructor(mode: TerminalMode, streams: { readonly out: Output; readonly err: Output }) {
    this.mode = mode;
    this.#out = streams.out;
    this.#err = streams.err;
  }

  get isInteractive(): boolean {
    return this.#out.isTTY === true;
  }

  /** One or more lines of a result; nothing with `--json`. */
  line(text = ''): void {
    if (this.mode === 'json') return;
    this.#clear();
    this.#out.write(`${text}\n`);
    this.#isInLine = false;
  }

  /** A part of a line, as it comes: a story's next characters. */
  part(text: string): void {
    if (this.mode === 'json' || text === '') return;
    this.#clear();
    this.#out.write(text);
    this.#isInLine = !text.endsWith('\n');
  }

  /** Ends the line that parts have begun. */
  endLine(): void {
    if (this.#isInLine) this.line();
  }

  /** One JSON line of a result; nothing without `--json`. `bigint` becomes a decimal string (G1). */
  event(value: Readonly<Record<string, unknown>>): void {
    if (this.mode === 'json') this.#out.write(`${jsonLine(value)}\n`);
  }

  /** A line about what is going on, beside the result: on standard error. */
  note(text: string): void {
    if (this.mode === 'json') return;
    this.#clear();
    this.#leaveLine();
    this.#err.write(`${text}\n`);
  }

  /**
   * Draws how far something has come, over what was drawn before.
   * @param fraction 0 to 1
   */
  progress(label: string, fraction: number): void {
    if (this.mode === 'json' || this.#err.isTTY !== true) return;
    const now = performance.now();
    const done = Math.max(0, Math.min(1, fraction));
    if (label === this.#label && done < 1 && now - this.#drawnAtMs < redrawMs) return;
    this.#label = label;
    this.#drawnAtMs = now;
    const filled = Math.round(done * barCells);
    const bar = `${'█'.repeat(filled)}${'░'.repeat(barCells - filled)}`;
    // A terminal that does not know its width says 0.
    const columns = this.#err.columns === undefined || this.#err.columns === 0 ? 80 : this.#err.columns;
    this.#err.write(
      `${clearLine}${`  ${bar} ${String(Math.round(done * 100)).padStart(3)}%  ${label}`.slice(0, columns - 1)}`,
    );
    this.#drawn = 'progress';
  }

  endProgress(): void {
    this.#clear();
  }

  /** One failure, as text or as one JSON line, on standard error. */
  failure(error: P4Error): void {
    this.#clear();
    this.#leaveLine();
    if (this.mode === 'text') this.#err.write(`${error.message}\n`);
    else {
      const { says, remedy, exit } = error.rule;
      this.#err.write(`${jsonLine({ event: 'error', code: error.code, says, facts: error.facts, remedy, exit })}\n`);
    }
  }

  /** On a terminal both outputs share a screen: what goes to one must not begin in a line of the other. */
  #leaveLine(): void {
    if (this.isInteractive) this.endLine();
  }

  #clear(): void {
    if (this.#drawn === 'nothing') return;
    this.#err.write(clearLine);
    this.#drawn = 'nothing';
  }
}

const jsonLine = (value: unknown): string =>
  JSON.stringify(value, (_key, field: unknown) => (typeof field === 'bigint' ? field.toString() : field));

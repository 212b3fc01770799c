/**
 * Where commands print: text for people or, with `--json`, one JSON object a line.
 *
 * Results go to standard output; progress and failures to standard error. Progress is drawn on a terminal only: in a
 * file or a pipe it would be noise.
 */
import type { Writable } from 'node:stream';

import type { P4Error } from '../protocol/errors.ts';

/** A stream that may be a terminal. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };

export type TerminalMode = 'text' | 'json';

const barCells = 24;
/** Between two drawings of the same progress. */
const redrawMs = 100;
const clearLine = '\r\x1b[2K';
const lineUp = '\x1b[1A';

export class Terminal {
  readonly mode: TerminalMode;
  readonly #out: Output;
  readonly #err: Output;
  /** Lines of progress on the screen; the cursor is at the end of the last one. */
  #drawnLines = 0;
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

  /** Whether somebody sees at once what stands beside the result. */
  get isNoticed(): boolean {
    return this.#err.isTTY === true;
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
    this.#draw([`  ${progressBar(done)}  ${label}`]);
  }

  /** Draws a line for each thing that is under way, over what was drawn before; the first ones where not all fit. */
  live(lines: readonly string[]): void {
    if (this.mode === 'json' || this.#err.isTTY !== true) return;
    const now = performance.now();
    if (lines.length === this.#drawnLines && now - this.#drawnAtMs < redrawMs) return;
    this.#drawnAtMs = now;
    this.#label = '';
    const rows = known(this.#err.rows, 24) - 1;
    this.#draw(lines.length <= rows ? lines : [...lines.slice(0, rows - 1), `  ${lines.length - rows + 1} more`]);
  }

  /** Each line is cut at the screen's edge: one that wrapped could not be drawn over. */
  #draw(lines: readonly string[]): void {
    const columns = known(this.#err.columns, 80);
    const text = lines.map((line) => line.slice(0, columns - 1)).join('\n');
    this.#err.write(`${this.#drawnLines === 0 ? clearLine : this.#clearing()}${text}`);
    this.#drawnLines = lines.length;
  }

  endProgress(): void {
    this.#clear();
  }

  /**
   * One failure, as text or as one JSON line, on standard error.
   * @param exit what the command ends with
   */
  failure(error: P4Error, exit: number = error.rule.exit): void {
    this.#clear();
    this.#leaveLine();
    if (this.mode === 'text') this.#err.write(`${error.message}\n`);
    else {
      const { says, remedy } = error.rule;
      this.#err.write(`${jsonLine({ event: 'error', code: error.code, says, facts: error.facts, remedy, exit })}\n`);
    }
  }

  /** On a terminal both outputs share a screen: what goes to one must not begin in a line of the other. */
  #leaveLine(): void {
    if (this.isInteractive) this.endLine();
  }

  #clear(): void {
    if (this.#drawnLines === 0) return;
    this.#err.write(this.#clearing());
    this.#drawnLines = 0;
  }

  #clearing(): string {
    return clearLine + `${lineUp}${clearLine}`.repeat(Math.max(0, this.#drawnLines - 1));
  }
}

/** A terminal that does not know its size says 0. */
const known = (size: number | undefined, otherwise: number): number =>
  size === undefined || size === 0 ? otherwise : size;

/** @param fraction 0 to 1 */
export function progressBar(fraction: number): string {
  const filled = Math.round(fraction * barCells);
  const bar = `${'█'.repeat(filled)}${'░'.repeat(barCells - filled)}`;
  return `${bar} ${String(Math.round(fraction * 100)).padStart(3)}%`;
}

const jsonLine = (value: unknown): string =>
  JSON.stringify(value, (_key, field: unknown) => (typeof field === 'bigint' ? field.toString() : field));

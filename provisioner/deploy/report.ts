/** What a deployment says while it runs and at its end: lines for people, or events with `--json`. */
import type { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import { progressBar, type Terminal } from '../terminal.ts';
import { bytesText } from '../text-table.ts';
import type { Change } from './difference.ts';
import { phaseTexts, type PhaseName } from './phase.ts';
import { recapHeading, recapLines, type Recap } from './recap.ts';

/** An upload under way. */
export interface UploadProgress {
  readonly sentBytes: number;
  readonly totalBytes: number;
}

export interface ReportOptions {
  readonly isCheck: boolean;
  readonly showsDifferences: boolean;
}

export class Report {
  readonly #terminal: Terminal;
  readonly #options: ReportOptions;
  readonly #width: number;
  /** What each host is at, while it is. */
  readonly #live = new Map<HostName, string>();
  readonly #uploads = new Map<HostName, { readonly startedAtMs: number; readonly resumedBytes: number }>();
  readonly #told = new Set<string>();
  #current: PhaseName | null = null;

  constructor(terminal: Terminal, hosts: readonly HostName[], options: ReportOptions) {
    this.#terminal = terminal;
    this.#options = options;
    this.#width = Math.max(0, ...hosts.map(({ length }) => length));
  }

  /** The phase that was begun last, `null` before the first. */
  get current(): PhaseName | null {
    return this.#current;
  }

  phase(phase: PhaseName): void {
    this.#current = phase;
    this.#clearLive();
    this.#terminal.line(`${phase.toUpperCase().padEnd(11)} ${phaseTexts[phase]}`);
    this.#terminal.event({ event: 'phase', phase });
  }

  heading(word: string, text: string): void {
    this.#clearLive();
    this.#terminal.line(`${word.toUpperCase().padEnd(11)} ${text}`);
  }

  /** A line about one host. */
  host(host: HostName, text: string): void {
    this.#terminal.line(`  ${host.padEnd(this.#width)}  ${text}`);
    this.#drawLive();
  }

  note(text: string): void {
    this.#terminal.line(`  ${text}`);
    this.#terminal.event({ event: 'note', text });
    this.#drawLive();
  }

  lines(lines: readonly string[]): void {
    for (const line of lines) this.#terminal.line(line === '' ? '' : `  ${line}`);
  }

  event(value: Readonly<Record<string, unknown>>): void {
    this.#terminal.event(value);
  }

  /** A change that was made; with `--check`, that would be. Each is told once. */
  change(host: HostName, change: Change): void {
    const { phase, text, difference } = change;
    const key = `${host} ${text}`;
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.host(host, `${this.#options.isCheck ? 'would change' : 'changed'}  ${text}`);
    const isShown = this.#options.showsDifferences && difference !== null;
    if (isShown) this.#terminal.line(indented(difference));
    this.#terminal.event({ event: 'change', host, phase, change: text, ...(isShown ? { difference } : {}) });
  }

  failure(host: HostName, phase: PhaseName, error: P4Error): void {
    this.host(host, `FAILED  ${error.message.split('\n').join(`\n  ${' '.repeat(this.#width)}  `)}`);
    this.#terminal.event({ event: 'host-failed', host, phase, code: error.code, facts: error.facts });
  }

  /** What a host is at: shown on a terminal, until it is done. */
  at(host: HostName, text: string | null): void {
    if (text === null) this.#live.delete(host);
    else this.#live.set(host, text);
    if (text === null) this.#uploads.delete(host);
    this.#drawLive();
  }

  upload(host: HostName, { sentBytes, totalBytes }: UploadProgress): void {
    const now = performance.now();
    const begun = this.#uploads.get(host) ?? { startedAtMs: now, resumedBytes: sentBytes };
    this.#uploads.set(host, begun);
    const seconds = (now - begun.startedAtMs) / 1000;
    const rate = seconds > 0 ? (sentBytes - begun.resumedBytes) / seconds : 0;
    const left = rate > 0 ? durationText((totalBytes - sentBytes) / rate) : '';
    const fraction = totalBytes === 0 ? 1 : sentBytes / totalBytes;
    this.at(
      host,
      `${progressBar(fraction)}  ${bytesText(sentBytes)} of ${bytesText(totalBytes)}  ${bytesText(rate)}/s  ${left}`,
    );
  }

  /** An upload that is done: what went over the connection, and all that the host had lacked. */
  sent(host: HostName, { sentBytes, totalBytes }: UploadProgress): void {
    const had = totalBytes - sentBytes;
    this.host(host, `sent ${bytesText(sentBytes)}${had > 0 ? `; ${bytesText(had)} had arrived before` : ''}`);
    this.#terminal.event({ event: 'sent', host, sentBytes, totalBytes });
  }

  /** How far something is that concerns all hosts. */
  progress(what: string, fraction: number): void {
    this.#terminal.progress(what, fraction);
  }

  recap(recaps: readonly Recap[]): void {
    this.#clearLive();
    this.#terminal.line(recapHeading(recaps, this.#options.isCheck));
    for (const line of recapLines(recaps)) this.#terminal.line(`  ${line}`);
    for (const recap of recaps) this.#terminal.event({ event: 'recap', ...recap });
  }

  #drawLive(): void {
    if (this.#live.size === 0) return;
    this.#terminal.live([...this.#live].map(([host, text]) => `  ${host.padEnd(this.#width)}  ${text}`));
  }

  #clearLive(): void {
    this.#live.clear();
    this.#uploads.clear();
    this.#terminal.endProgress();
  }
}

const indented = (text: string): string =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => `      ${line}`)
    .join('\n');

/** `4 s left`, `2:05 min left`. */
export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s left`;
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')} min left`;
}

/** How far a command has read a request, and the command that goes on from there. */
import { P4Error } from '../protocol/errors.ts';
import type { RequestNews } from './ring-request.ts';
import { shellWords } from './ssh/shell-quoting.ts';

export interface ReadingCommand {
  /** As it was typed. */
  readonly planFile: string;
  /** As it was typed, `undefined` where commands find it by themselves. */
  readonly state: string | undefined;
}

export class ReadingPlace {
  readonly #command: ReadingCommand;
  /** `null` before it is submitted. */
  #request: number | null;
  #next: number;

  /** @param earlier the request that is read, `null` for one that is yet to be submitted */
  constructor(command: ReadingCommand, earlier: { readonly request: number; readonly from: number } | null) {
    this.#command = command;
    this.#request = earlier?.request ?? null;
    this.#next = earlier?.from ?? 0;
  }

  hear(news: RequestNews): void {
    if (news.kind === 'submitted') this.#request = news.request;
    if (news.kind === 'token') this.#next = news.token.index + 1;
  }

  /** The command that shows the receipts. */
  get settling(): string {
    return this.#commandLine('settle', ['--request', String(this.#request)]);
  }

  /** `null` while there is no request to come back to. */
  get way(): { readonly request: number; readonly next: number; readonly command: string } | null {
    if (this.#request === null) return null;
    const [request, next] = [this.#request, this.#next];
    const command = this.#commandLine('infer', ['--request', String(request), '--from', String(next)]);
    return { request, next, command };
  }

  #commandLine(name: 'infer' | 'settle', options: readonly string[]): string {
    const { planFile, state } = this.#command;
    const words = [planFile, ...options, ...(state === undefined ? [] : ['--state', state])];
    return `npm run ${name} -- ${shellWords(...words)}`;
  }
}

/** Whether the request may still run after a reading that ended so: a client's own Ctrl-C cancels it, a mere reader's does not. */
export const isLeftBehind = (error: unknown, reads: 'new' | 'earlier'): boolean =>
  error instanceof P4Error && (error.code === 'REQUEST_CUT_OFF' || (error.code === 'CANCELLED' && reads === 'earlier'));

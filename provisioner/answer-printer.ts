/** Prints a request as it runs, and what it took: as text or as JSON lines. Used by `infer` and by the demo. */
import { unreachable } from '../protocol/assert.ts';
import { isErrorCode, P4Error } from '../protocol/errors.ts';
import { finishReasons, type FinishReason } from '../protocol/finish.ts';
import { lossEvent, lossLine } from './loss-text.ts';
import type { RequestNews, RequestResult, RequestSubmitted } from './ring-request.ts';
import { silenceLine, type SilentPart } from './silence-watch.ts';
import { firstTokenMs, speedLine, stageWorkLines, tokensPerSecond } from './stage-work.ts';
import type { Terminal } from './terminal.ts';

/** Reasons worth a word beside the answer; the others are its proper end, or errors. */
const earlyReasons: Readonly<Record<string, string>> = {
  'context-full': "The session's context is full.",
  'grammar-dead-end': 'No token goes on as the grammar wants it.',
};

export interface PrintedRequest {
  /** `null` where another command chose it. */
  readonly seed: number | null;
  /** `null`: until the context is full. */
  readonly maxTokens: number | null;
}

const waitingLine = (ahead: number): string =>
  `All sessions of the ring are in use; waiting for one to end, ${ahead === 0 ? 'as the next' : `behind ${ahead}`} ...`;

export class AnswerPrinter {
  readonly #terminal: Terminal;
  readonly #request: PrintedRequest;

  constructor(terminal: Terminal, request: PrintedRequest) {
    this.#terminal = terminal;
    this.#request = request;
  }

  /** `token` lines and, before them, one `submitted` line; or the text, as it comes. */
  news(news: RequestNews): void {
    switch (news.kind) {
      case 'waiting':
        this.#terminal.note(waitingLine(news.ahead));
        this.#terminal.event({ event: 'waiting', ahead: news.ahead });
        return;
      case 'submitted':
        this.#submitted(news);
        return;
      case 'token': {
        const { index, token, text } = news.token;
        this.#terminal.part(text);
        this.#terminal.event({ event: 'token', index, token, text });
        return;
      }
      case 'paused':
      case 'resumed':
      case 'disconnected':
      case 'reconnected':
        this.#terminal.note(lossLine(news, wallClockMs));
        this.#terminal.event(lossEvent(news, wallClockMs));
        return;
      default:
        unreachable(news);
    }
  }

  /** Part of the ring does not answer, while no token comes. */
  silent(part: SilentPart): void {
    this.#terminal.note(silenceLine(part));
    this.#terminal.event({ event: 'silent', ...part });
  }

  /** Who has the number can come back to the request. */
  #submitted({ request, promptTokens, contextTokens }: RequestSubmitted): void {
    const { seed, maxTokens } = this.#request;
    this.#terminal.event({ event: 'submitted', request, seed, promptTokens, contextTokens });
    if (this.#terminal.isNoticed) this.#terminal.note(`Request ${request}.`);
    // The last token needs no room: no row follows it.
    const most = contextTokens - promptTokens + 1;
    if (maxTokens !== null && maxTokens > most) {
      this.#terminal.note(`At most ${most} tokens can follow, not ${maxTokens}: the context has ${contextTokens}.`);
    }
  }

  /** The rest of the text, then its `end` line. */
  end({ end }: RequestResult): void {
    const { reason, text, promptTokens, completionTokens } = end;
    this.#terminal.part(text);
    // In a pipe or a file the answer stands as it is.
    if (this.#terminal.isInteractive) this.#terminal.endLine();
    this.#terminal.event({ event: 'end', reason, text, promptTokens, completionTokens });
    const early = earlyReasons[reason];
    if (early !== undefined) this.#terminal.note(early);
  }

  /** Who asked for tokens beyond the answer's last one is told why none came. */
  beyond(from: number, completionTokens: number): void {
    if (from < completionTokens || from === 0) return;
    const counted = completionTokens === 1 ? '1 token' : `${completionTokens} tokens`;
    this.#terminal.note(`The answer has ${counted}: none from ${from} on.`);
  }

  /** The last line: usage and settlement (S2). */
  settlement({ end, isSettled, stages, emitted, times }: RequestResult): void {
    const [head] = stages;
    this.#terminal.event({
      event: 'settlement',
      settled: isSettled,
      seed: this.#request.seed,
      usage: {
        promptTokens: end.promptTokens,
        completionTokens: emitted,
        totalTokens: end.promptTokens + emitted,
        reusedTokens: head?.reused ?? 0,
      },
      stages,
      firstTokenMs: firstTokenMs(times),
      tokensPerSecond: tokensPerSecond(times),
    });
  }
}

export const workLines = ({ stages, times }: RequestResult): readonly string[] => [
  ...stageWorkLines(stages),
  `The ring: ${speedLine(times)}.`,
];

/** @throws the error of a request that the ring did not carry out: its text is not whole */
export function requireFinished({ end: { reason, detail } }: RequestResult): void {
  if (!isFinishReason(reason)) throw new P4Error('RPC_FAILED', { what: 'finish reason', found: reason });
  switch (reason) {
    case 'end-of-generation':
    case 'stop-string':
    case 'length':
    case 'context-full':
    case 'grammar-dead-end':
      return;
    case 'refused':
      throw new P4Error('REQUEST_REFUSED', { detail });
    case 'ring-lost':
      throw new P4Error(detail.startsWith('RING_UNLOADED') ? 'RING_UNLOADED' : 'RING_LOST', { detail });
    case 'journal-failed':
      throw new P4Error(isErrorCode(detail) ? detail : 'RING_LOST', { detail });
    case 'cancelled':
      throw new P4Error('REQUEST_CANCELLED');
    default:
      unreachable(reason);
  }
}

const isFinishReason = (text: string): text is FinishReason => finishReasons.some((reason) => reason === text);

/** The time of day for a time of the clock that readings are timed with. */
const wallClockMs = (atMs: number): number => Date.now() + atMs - performance.now();

/**
 * What came out of each request and is durable (J8): readers gather it from any index on, as often as they like.
 *
 * Kept in memory for running requests and for the latest that ended. Readers of a running one are told, too, when it waits
 * for its ring or for the journal, and when it goes on; that is no part of what came out.
 */
import { present } from '../protocol/assert.ts';
import type { P4Error } from '../protocol/errors.ts';
import type { LoadId, RequestId, TokenId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { RequestAddress, RequestEnd } from './inputs.ts';

export interface TranscriptToken {
  readonly index: number;
  readonly token: TokenId;
  readonly text: string;
}

/** Why a request waits, and on the clock that only goes forward until when; `null` for as long as it takes. */
export interface Pause {
  readonly error: P4Error;
  readonly untilMs: number | null;
}

export type TranscriptEvent =
  | { readonly kind: 'token'; readonly token: TranscriptToken }
  | { readonly kind: 'end'; readonly end: RequestEnd }
  | { readonly kind: 'paused'; readonly pause: Pause }
  | { readonly kind: 'resumed' };

interface Transcript {
  readonly of: RequestAddress;
  readonly tokens: TranscriptToken[];
  end: RequestEnd | null;
  readonly readers: Set<Reader>;
}

export class Transcripts {
  readonly #transcripts = new Map<string, Transcript>();
  readonly #ringPauses = new Map<LoadId, Pause>();
  #journalPause: Pause | null = null;

  /** Called when a request is admitted, or found to run by an agent that has started; one that is known stays. */
  begin(of: RequestAddress): void {
    const key = keyOf(of.load, of.request);
    if (this.#transcripts.has(key)) return;
    this.#transcripts.set(key, { of, tokens: [], end: null, readers: new Set() });
    this.#forgetOldest();
  }

  addToken(of: RequestAddress, token: TranscriptToken): void {
    const transcript = this.#transcripts.get(keyOf(of.load, of.request));
    if (transcript?.tokens.length !== token.index) return;
    transcript.tokens.push(token);
    wake(transcript);
  }

  addEnd(of: RequestAddress, end: RequestEnd): void {
    const transcript = this.#transcripts.get(keyOf(of.load, of.request));
    if (transcript === undefined) return;
    transcript.end = end;
    wake(transcript);
  }

  /** `null`: the ring goes on. */
  pauseRing(load: LoadId, pause: Pause | null): void {
    if (pause === null) this.#ringPauses.delete(load);
    else this.#ringPauses.set(load, pause);
    this.#wakeAll();
  }

  /** `null`: the journal can be written again. */
  pauseAll(pause: Pause | null): void {
    this.#journalPause = pause;
    this.#wakeAll();
  }

  /** The request's transcript, whoever's session it is in if `session` is 0. */
  find(of: Pick<RequestAddress, 'load' | 'session' | 'request'>): RequestAddress | null {
    const found = this.#transcripts.get(keyOf(of.load, of.request))?.of;
    return found !== undefined && (of.session === 0 || of.session === found.session) ? found : null;
  }

  /** Tokens from index `from` on, inclusive, as they come, then the end; stops early when `signal` aborts. */
  async *read(of: RequestAddress, from: number, signal: AbortSignal): AsyncGenerator<TranscriptEvent> {
    const transcript = present(this.#transcripts.get(keyOf(of.load, of.request)), 'the reader looked first');
    const reader = new Reader(transcript, signal);
    try {
      let told: Pause | null = null;
      for (let next = from; !signal.aborted;) {
        const token = transcript.tokens[next];
        const pause = this.#pauseOf(of.load);
        if (token !== undefined) {
          next++;
          yield { kind: 'token', token };
        } else if (transcript.end !== null) {
          yield { kind: 'end', end: transcript.end };
          return;
        } else if (pause !== told) {
          told = pause;
          yield pause === null ? { kind: 'resumed' } : { kind: 'paused', pause };
        } else await reader.changed();
      }
    } finally {
      reader.leave();
    }
  }

  #pauseOf(load: LoadId): Pause | null {
    return this.#ringPauses.get(load) ?? this.#journalPause;
  }

  #wakeAll(): void {
    for (const transcript of this.#transcripts.values()) wake(transcript);
  }

  #forgetOldest(): void {
    if (this.#transcripts.size <= limits.keptTranscripts) return;
    for (const [key, { end }] of this.#transcripts) {
      if (end === null) continue;
      this.#transcripts.delete(key);
      return;
    }
  }
}

const keyOf = (load: LoadId, request: RequestId): string => `${load}.${request}`;

function wake(transcript: Transcript): void {
  for (const reader of transcript.readers) reader.wake();
}

/** Listens once for as long as it reads, not anew for each token. */
class Reader {
  readonly #transcript: Transcript;
  readonly #signal: AbortSignal;
  #wake: (() => void) | null = null;

  constructor(transcript: Transcript, signal: AbortSignal) {
    this.#transcript = transcript;
    this.#signal = signal;
    transcript.readers.add(this);
    signal.addEventListener('abort', this.wake);
  }

  /** Resolves with the next change of the transcript or of what it waits for, or when the signal aborts. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  readonly wake = (): void => {
    this.#wake?.();
    this.#wake = null;
  };

  leave(): void {
    this.#transcript.readers.delete(this);
    this.#signal.removeEventListener('abort', this.wake);
  }
}

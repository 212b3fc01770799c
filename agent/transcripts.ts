/**
 * What came out of each request and is durable (J8): readers gather it from any index on, as often as they like.
 *
 * Kept in memory for running requests and for the latest that ended.
 */
import { present } from '../protocol/assert.ts';
import type { LoadId, RequestId, TokenId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { RequestAddress, RequestEnd } from './inputs.ts';

export interface TranscriptToken {
  readonly index: number;
  readonly token: TokenId;
  readonly text: string;
}

export type TranscriptEvent =
  { readonly kind: 'token'; readonly token: TranscriptToken } | { readonly kind: 'end'; readonly end: RequestEnd };

interface Transcript {
  readonly of: RequestAddress;
  readonly tokens: TranscriptToken[];
  end: RequestEnd | null;
  readonly readers: Set<() => void>;
}

export class Transcripts {
  readonly #transcripts = new Map<string, Transcript>();

  /** Called when a request is admitted. */
  begin(of: RequestAddress): void {
    this.#transcripts.set(keyOf(of.load, of.request), { of, tokens: [], end: null, readers: new Set() });
    this.#forgetOldest();
  }

  addToken(of: RequestAddress, token: TranscriptToken): void {
    const transcript = this.#transcripts.get(keyOf(of.load, of.request));
    if (transcript === undefined) return;
    transcript.tokens.push(token);
    wake(transcript);
  }

  addEnd(of: RequestAddress, end: RequestEnd): void {
    const transcript = this.#transcripts.get(keyOf(of.load, of.request));
    if (transcript === undefined) return;
    transcript.end = end;
    wake(transcript);
  }

  has(of: Pick<RequestAddress, 'load' | 'session' | 'request'>): boolean {
    return this.#transcripts.get(keyOf(of.load, of.request))?.of.session === of.session;
  }

  /** Tokens from index `from` on, inclusive, as they come, then the end; stops early when `signal` aborts. */
  async *read(of: RequestAddress, from: number, signal: AbortSignal): AsyncGenerator<TranscriptEvent> {
    const transcript = present(this.#transcripts.get(keyOf(of.load, of.request)), 'the reader looked first');
    for (let next = from; !signal.aborted;) {
      const token = transcript.tokens[next];
      if (token !== undefined) {
        next++;
        yield { kind: 'token', token };
      } else if (transcript.end !== null) {
        yield { kind: 'end', end: transcript.end };
        return;
      } else await changed(transcript, signal);
    }
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
  const readers = [...transcript.readers];
  transcript.readers.clear();
  for (const reader of readers) reader();
}

function changed(transcript: Transcript, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      transcript.readers.delete(done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    transcript.readers.add(done);
    signal.addEventListener('abort', done);
  });
}

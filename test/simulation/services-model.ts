/** What an agent process holds for its callers: replies, what came out of requests (J8), and the leases of sessions. */
import type { CallId, CallReply } from '../../agent/calls.ts';
import type { Effect } from '../../agent/effects.ts';
import type { FinishReason } from '../../protocol/finish.ts';
import type { LoadId, RequestId, SessionId, TokenId } from '../../protocol/ids.ts';
import type { JournalModel } from './journal-model.ts';
import { Violation } from './violation.ts';

export type GatherNews =
  | { readonly kind: 'token'; readonly index: number; readonly token: TokenId }
  | { readonly kind: 'end'; readonly reason: FinishReason }
  | { readonly kind: 'paused' | 'resumed' };

export type Reader = (news: GatherNews) => void;

interface Transcript {
  readonly load: LoadId;
  readonly tokens: TokenId[];
  end: FinishReason | null;
  readonly readers: Set<Reader>;
}

interface Lease {
  isHeld: boolean;
  /** Counts its changes of hands, so that a timer of before is told apart. */
  turn: number;
  ended: () => void;
}

export interface ServicesOutside {
  readonly journal: JournalModel;
  readonly after: (ms: number, run: () => void) => void;
  readonly expire: (load: LoadId, session: SessionId) => void;
  readonly lingerMs: number;
}

export class ServicesModel {
  readonly #outside: ServicesOutside;
  readonly #calls = new Map<CallId, (reply: CallReply | 'gone') => void>();
  readonly #transcripts = new Map<string, Transcript>();
  readonly #leases = new Map<string, Lease>();
  /** Callers whose connection breaks with the process. */
  readonly #connected = new Set<() => void>();

  constructor(outside: ServicesOutside) {
    this.#outside = outside;
  }

  /** `answered` hears of the reply, or that the process ended. */
  await(call: CallId, answered: (reply: CallReply | 'gone') => void): void {
    this.#calls.set(call, answered);
  }

  answer(call: CallId, reply: CallReply): void {
    const answered = this.#calls.get(call);
    this.#calls.delete(call);
    answered?.(reply);
  }

  /** The process ends: whoever waits hears nothing more from it. */
  end(): void {
    for (const answered of this.#calls.values()) answered('gone');
    this.#calls.clear();
    for (const broken of this.#connected) broken();
    this.#connected.clear();
  }

  /** @returns takes it off again */
  onEnd(broken: () => void): () => void {
    this.#connected.add(broken);
    return () => {
      this.#connected.delete(broken);
    };
  }

  publish(effect: Extract<Effect, { kind: `publish-${string}` }>): void {
    switch (effect.kind) {
      case 'publish-begin': {
        const { load, request } = effect.of;
        this.#transcripts.set(keyOf(load, request), { load, tokens: [], end: null, readers: new Set() });
        return;
      }
      case 'publish-token':
        this.#token(effect);
        return;
      case 'publish-end': {
        const transcript = this.#transcripts.get(keyOf(effect.of.load, effect.of.request));
        if (transcript === undefined) return;
        transcript.end = effect.end.reason;
        tell(transcript, { kind: 'end', reason: effect.end.reason });
        return;
      }
      case 'publish-pause':
      case 'publish-resume': {
        const news = effect.kind === 'publish-pause' ? 'paused' : 'resumed';
        for (const transcript of this.#transcripts.values()) {
          if (transcript.load === effect.load && transcript.end === null) tell(transcript, { kind: news });
        }
      }
    }
  }

  /** From an index on, what there is, then what comes; false where nothing is known of the request. */
  read(of: { readonly load: LoadId; readonly request: RequestId }, from: number, reader: Reader): boolean {
    const transcript = this.#transcripts.get(keyOf(of.load, of.request)) ?? this.#kept(of.load, of.request);
    if (transcript === null) return false;
    transcript.tokens.slice(from).forEach((token, offset) => {
      reader({ kind: 'token', index: from + offset, token });
    });
    if (transcript.end === null) transcript.readers.add(reader);
    else reader({ kind: 'end', reason: transcript.end });
    return true;
  }

  hold(load: LoadId, session: SessionId, ended: () => void): void {
    const former = this.#leases.get(keyOf(load, session));
    this.#leases.set(keyOf(load, session), { isHeld: true, turn: (former?.turn ?? 0) + 1, ended });
  }

  letGo(load: LoadId, session: SessionId): void {
    const former = this.#leases.get(keyOf(load, session));
    const turn = (former?.turn ?? 0) + 1;
    this.#leases.set(keyOf(load, session), { isHeld: false, turn, ended: () => undefined });
    this.#outside.after(this.#outside.lingerMs, () => {
      const now = this.#leases.get(keyOf(load, session));
      if (now?.turn === turn) this.#outside.expire(load, session);
    });
  }

  /** A session that nobody is known to hold. */
  awaitLease(load: LoadId, session: SessionId): void {
    if (this.#leases.get(keyOf(load, session))?.isHeld !== true) this.letGo(load, session);
  }

  endLease(load: LoadId, session: SessionId): void {
    const lease = this.#leases.get(keyOf(load, session));
    this.#leases.delete(keyOf(load, session));
    lease?.ended();
  }

  #token({ of, index, token }: Extract<Effect, { kind: 'publish-token' }>): void {
    // J8: whoever reads it reads what is durable.
    const kept = this.#outside.journal.request(of.load, of.request);
    if (kept?.tokens[index] !== token) {
      throw new Violation('J8', `token ${index} of request ${of.request} is published and not in the journal`);
    }
    const transcript = this.#transcripts.get(keyOf(of.load, of.request));
    if (transcript === undefined) return;
    if (transcript.tokens.length !== index) throw new Violation('J8', `token ${index} is published out of order`);
    transcript.tokens.push(token);
    tell(transcript, { kind: 'token', index, token });
  }

  /** What memory has let go of is in the journal. */
  #kept(load: LoadId, request: RequestId): Transcript | null {
    const kept = this.#outside.journal.request(load, request);
    if (kept === undefined || kept.ended === null) return null;
    return { load, tokens: kept.tokens, end: kept.ended, readers: new Set() };
  }
}

const keyOf = (load: LoadId, of: RequestId | SessionId): string => `${load}.${of}`;

function tell({ readers }: Transcript, news: GatherNews): void {
  for (const reader of [...readers]) reader(news);
  if (news.kind === 'end') readers.clear();
}

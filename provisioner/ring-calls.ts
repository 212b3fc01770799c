/** OUTER's calls to one ring, at its head's agent, each with the ring's generation (G3) and a deadline. */
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

import { P4Error } from '../protocol/errors.ts';
import type { RingName, Generation, HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type {
  GatherEvent,
  SessionOpened,
  Settlement,
  SubmitFields,
  SubmitPrompt,
  SubmitReply,
} from '../protocol/messages.ts';
import type { AgentClient } from './agent-client.ts';
import { interruption } from './interrupt.ts';

/** A session held open by its lease. */
export interface HeldSession extends Pick<SessionOpened, 'session' | 'contextTokens'> {
  /** Settles with the reason when the lease broke; never when it was let go, left or ended by the agent. */
  readonly broken: Promise<P4Error>;
  /** Settles when the agent ended the lease in order: somebody else has it now, or the session has ended. */
  readonly passedOn: Promise<void>;
  /** Ends the lease, and with it the session and whatever runs in it. */
  letGo(): Promise<void>;
  /** Ends the lease alone: the session and what runs in it stay for its time to linger. */
  leave(): Promise<void>;
}

export interface SessionOrder {
  /** How long the session stays without its lease; not at all unless it says. */
  readonly lingerMs?: number;
  /** One that stands, whose lease is taken up. */
  readonly session?: number;
  /** Sessions with the same share what they begin with; unless it says, this one shares nothing. */
  readonly cacheKey?: string;
  /** How long to wait for the answer; for ever unless it says. Time in the queue is none of it. */
  readonly answerMs?: number;
  /** Waits where all sessions are taken, and hears at once how many wait before; refused unless it says. */
  readonly onWaiting?: (ahead: number) => void;
}

/** A request of the ring. Session 0 stands for whichever it belongs to. */
export interface RequestPlace {
  readonly session: number;
  readonly request: number;
}

export type Submission = Omit<SubmitFields, 'ring' | 'generation'> & SubmitPrompt;

type Lease = AsyncGenerator<SessionOpened, void, undefined>;

export class RingCalls {
  readonly #client: AgentClient;
  readonly #ring: { readonly ring: RingName; readonly generation: string };

  constructor(client: AgentClient, ring: RingName, generation: Generation) {
    this.#client = client;
    this.#ring = { ring, generation: generation.toString() };
  }

  /** Where the ring's head is. */
  get headHost(): HostName {
    return this.#client.peer.host;
  }

  /**
   * Opens a session, or takes up the lease of one that stands. It lasts until it is let go, or its lease has been gone for
   * its time to linger: left, broken, or ended with this process.
   * @throws what the agent refuses; RPC_TIMED_OUT, CANCELLED
   */
  async openSession(signal: AbortSignal, order: SessionOrder = {}): Promise<HeldSession> {
    const { lingerMs = 0, session: standing = 0, cacheKey = '', onWaiting } = order;
    const ending = new AbortController();
    const lease = this.#client.stream(
      ['Outer', 'OpenSession'],
      { ...this.#ring, lingerMs, session: standing, cacheKey, waits: onWaiting !== undefined },
      { deadlineMs: null, signal: AbortSignal.any([signal, ending.signal]) },
    );
    const opened = await this.#opened(lease, ending, order);
    const { session, contextTokens } = opened;
    const isWanted = (): boolean => !signal.aborted && !ending.signal.aborted;
    const ended = endOf(lease);
    const broken = ended.then((error) => (error !== null && isWanted() ? error : new Promise<never>(() => undefined)));
    const passedOn = ended.then((error) => (error === null ? undefined : new Promise<never>(() => undefined)));
    const leave = async (): Promise<void> => {
      ending.abort(new P4Error('CANCELLED', { by: 'its holder' }));
      await ended;
    };
    const letGo = async (): Promise<void> => {
      // Closed by name first: that is answered when it is done, while a lease just ends.
      await this.closeSession(session).finally(leave);
    };
    return { session, contextTokens, broken, passedOn, letGo, leave };
  }

  async closeSession(session: number): Promise<void> {
    await this.#client.call(['Outer', 'CloseSession'], { ...this.#ring, session }, { deadlineMs: limits.answerMs });
  }

  submit(submission: Submission, signal: AbortSignal): Promise<SubmitReply> {
    const request = { ...this.#ring, ...submission };
    return this.#client.call(['Outer', 'Submit'], request, { deadlineMs: limits.answerMs, signal });
  }

  /** What comes out, from the first token on. */
  gather(session: number, request: number, signal: AbortSignal): AsyncIterable<GatherEvent> {
    return this.gatherFrom({ session, request, from: 0 }, signal);
  }

  /** What comes out, from the token with index `from` on, inclusive. */
  gatherFrom(at: RequestPlace & { readonly from: number }, signal: AbortSignal): AsyncIterable<GatherEvent> {
    return this.#client.stream(['Outer', 'Gather'], { ...this.#ring, ...at }, { deadlineMs: null, signal });
  }

  /** As `settleWithin`, for as long as receipts may take. */
  settle(session: number, request: number, signal: AbortSignal): Promise<Settlement> {
    return this.settleWithin({ session, request }, limits.settleMs, signal);
  }

  /**
   * Asks for a request's settlement until its receipts are there (S3), or the time is over.
   * @returns the latest answer: `running` at once, `ending` when the time is over
   * @throws what the agent refuses: REQUEST_UNKNOWN, REQUEST_EXPIRED; CANCELLED
   */
  async settleWithin(at: RequestPlace, withinMs: number, signal: AbortSignal): Promise<Settlement> {
    const endsAtMs = performance.now() + withinMs;
    for (let waitMs = limits.settlePollMs; ; waitMs = Math.min(2 * waitMs, limits.settlePollMostMs)) {
      const answer = await this.#settlement(at, signal);
      if (answer.state !== 'ending' || performance.now() >= endsAtMs) return answer;
      await delay(waitMs, undefined, { signal }).catch((error: unknown) => {
        throw signal.aborted ? interruption(signal) : error;
      });
    }
  }

  #settlement(at: RequestPlace, signal: AbortSignal): Promise<Settlement> {
    const options = { deadlineMs: limits.answerMs, signal };
    return this.#client.call(['Outer', 'Settle'], { ...this.#ring, ...at }, options);
  }

  async #opened(lease: Lease, ending: AbortController, { answerMs, onWaiting }: SessionOrder): Promise<SessionOpened> {
    const tooLate = (): void => {
      ending.abort(new P4Error('RPC_TIMED_OUT', { host: this.headHost, method: 'Outer.OpenSession' }));
    };
    const late = answerMs === undefined ? undefined : setTimeout(tooLate, answerMs);
    try {
      for (let event = await lease.next(); event.done !== true; event = await lease.next()) {
        if (event.value.session !== 0) return event.value;
        clearTimeout(late);
        onWaiting?.(event.value.ahead);
      }
      throw new P4Error('RPC_FAILED', { method: 'Outer.OpenSession', found: 'no session' });
    } finally {
      clearTimeout(late);
    }
  }
}

/** Reads a lease to its end. @returns why it broke, `null` when the agent ended it */
async function endOf(lease: Lease): Promise<P4Error | null> {
  try {
    for (;;) if ((await lease.next()).done === true) return null;
  } catch (error) {
    if (error instanceof P4Error) return error;
    throw error;
  }
}

/** OUTER's calls to one ring, at its head's agent, each with the ring's generation (G3) and a deadline. */
import { P4Error } from '../protocol/errors.ts';
import type { RingName, Generation } from '../protocol/ids.ts';
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

/** A session held open by its lease. */
export interface HeldSession extends SessionOpened {
  /** Ends the lease, and with it the session and whatever runs in it. */
  letGo(): Promise<void>;
}

export type Submission = Omit<SubmitFields, 'ring' | 'generation'> & SubmitPrompt;

export class RingCalls {
  readonly #client: AgentClient;
  readonly #ring: { readonly ring: RingName; readonly generation: string };

  constructor(client: AgentClient, ring: RingName, generation: Generation) {
    this.#client = client;
    this.#ring = { ring, generation: generation.toString() };
  }

  /**
   * Opens a session. It lasts until it is let go, this process ends or its connection is lost.
   * @throws what the agent refuses; CANCELLED
   */
  async openSession(signal: AbortSignal): Promise<HeldSession> {
    const lease = this.#client.stream(
      ['Outer', 'OpenSession'],
      { ...this.#ring, lingerMs: 0 },
      { deadlineMs: null, signal },
    );
    const opened = await lease.next();
    if (opened.done === true) throw new P4Error('RPC_FAILED', { method: 'Outer.OpenSession', found: 'no session' });
    const { session, contextTokens } = opened.value;
    return { session, contextTokens, letGo: () => this.#letGo(lease, session) };
  }

  submit(submission: Submission, signal: AbortSignal): Promise<SubmitReply> {
    const request = { ...this.#ring, ...submission };
    return this.#client.call(['Outer', 'Submit'], request, { deadlineMs: limits.answerMs, signal });
  }

  /** What comes out, from the first token on. */
  gather(session: number, request: number, signal: AbortSignal): AsyncIterable<GatherEvent> {
    const at = { ...this.#ring, session, request, from: 0 };
    return this.#client.stream(['Outer', 'Gather'], at, { deadlineMs: null, signal });
  }

  /** Answers when the receipts of all stages are there (S3). */
  settle(session: number, request: number, signal: AbortSignal): Promise<Settlement> {
    const at = { ...this.#ring, session, request };
    return this.#client.call(['Outer', 'Settle'], at, { deadlineMs: limits.settleMs, signal });
  }

  /** Closed by name first: that is answered when it is done, while a lease just ends. */
  async #letGo(lease: AsyncGenerator<SessionOpened, void, undefined>, session: number): Promise<void> {
    const at = { ...this.#ring, session };
    await this.#client.call(['Outer', 'CloseSession'], at, { deadlineMs: limits.answerMs });
    await lease.return();
  }
}

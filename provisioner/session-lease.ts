/**
 * A client's hold on one session, whatever becomes of the connection that carries it: while its lease is broken the session
 * lingers at the agent, and is taken up again.
 */
import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { HeldSession, RingCalls } from './ring-calls.ts';

export interface LeaseOrder {
  readonly ring: RingCalls;
  /** How long the session stays without its lease. */
  readonly lingerMs: number;
  /** Of a new session: those with the same share what they begin with. */
  readonly cacheKey?: string;
  readonly signal: AbortSignal;
  /** Told once where all sessions are taken and a new one waits for its turn. */
  readonly onWaiting: (ahead: number) => void;
}

/** The session is not there, or somebody else holds it: what is known of its request can be read all the same. */
const notOurs: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['SESSION_UNKNOWN', 'SESSION_BUSY']);

export class SessionLease {
  readonly #order: LeaseOrder;
  #session: number;
  #held: HeldSession | null = null;
  #contextTokens = 0;
  /** Until the lease is taken back from another reader. */
  #passedOn: NodeJS.Timeout | undefined;

  private constructor(order: LeaseOrder, session: number) {
    this.#order = order;
    this.#session = session;
  }

  /** Of a new session. @throws what the agent refuses; CANCELLED */
  static async open(order: LeaseOrder): Promise<SessionLease> {
    const lease = new SessionLease(order, 0);
    await lease.#hold({});
    return lease;
  }

  /**
   * Of a session that stands; without a hold where it is not there.
   * @param session 0 for none
   * @throws what the agent refuses; CANCELLED
   */
  static async takeUp(order: LeaseOrder, session: number): Promise<SessionLease> {
    const lease = new SessionLease(order, session);
    await lease.again();
    return lease;
  }

  /** 0 where there is none. */
  get session(): number {
    return this.#session;
  }

  /** Tokens that the session may hold; 0 before it was held. */
  get contextTokens(): number {
    return this.#contextTokens;
  }

  /** What is held, `null` where the session is not there, or its lease broke. */
  get held(): HeldSession | null {
    return this.#held;
  }

  /** Takes the session up again, after its lease broke. @throws as `takeUp` */
  async again(): Promise<void> {
    await this.#drop();
    if (this.#session === 0) return;
    try {
      await this.#hold({ session: this.#session });
    } catch (error) {
      if (!(error instanceof P4Error) || !notOurs.has(error.code)) throw error;
      this.#session = 0;
    }
  }

  /** Opens another session in this one's place, which is ended with whatever runs in it. @throws as `open` */
  async renew(): Promise<void> {
    await this.#drop();
    if (this.#session !== 0) await this.#close();
    await this.#hold({});
  }

  /** Ends the session and whatever runs in it, as far as the agent answers. */
  async letGo(): Promise<void> {
    if (this.#session === 0) return;
    await this.#close().catch(onlyRefused);
    await this.#drop();
  }

  /** Ends the lease alone. */
  async leave(): Promise<void> {
    await this.#drop();
  }

  async #hold(order: { readonly session?: number }): Promise<void> {
    const { ring, lingerMs, cacheKey = '', signal, onWaiting } = this.#order;
    const settings = { lingerMs, cacheKey, answerMs: limits.answerMs, onWaiting };
    const held = await ring.openSession(signal, { ...order, ...settings });
    this.#held = held;
    // Readers of one session have its lease in turn: whichever of them leaves, the others keep the session.
    void held.passedOn.then(() => {
      if (this.#held !== held || lingerMs === 0) return;
      this.#passedOn = setTimeout(() => {
        this.#takeBack(held);
      }, lingerMs / 2).unref();
    });
    this.#session = held.session;
    this.#contextTokens = held.contextTokens;
  }

  /** Closing a session that is not open any more is answered like another. */
  #close(): Promise<void> {
    return this.#order.ring.closeSession(this.#session);
  }

  /** What goes wrong here goes wrong for the reading too, which sees to it. */
  #takeBack(former: HeldSession): void {
    if (this.#held === former) this.again().catch(onlyRefused);
  }

  async #drop(): Promise<void> {
    clearTimeout(this.#passedOn);
    const held = this.#held;
    this.#held = null;
    await held?.leave();
  }
}

/** An agent that refuses or is gone has no session left to end. */
function onlyRefused(error: unknown): void {
  if (!(error instanceof P4Error)) throw error;
}

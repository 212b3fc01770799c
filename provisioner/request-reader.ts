/** The shell of `request-reading.ts`: it reads a request from its ring, and dials again where that says so. */
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

import { P4Error } from '../protocol/errors.ts';
import type { GatheredEnd } from '../protocol/messages.ts';
import { interruption } from './interrupt.ts';
import {
  beginReading,
  readingStep,
  type Reading,
  type ReadingAction,
  type ReadingFailure,
  type ReadingInput,
  type ReadingNews,
} from './request-reading.ts';
import type { RingCalls } from './ring-calls.ts';
import type { SessionLease } from './session-lease.ts';

export interface ReaderOrder {
  readonly ring: RingCalls;
  readonly lease: SessionLease;
  /** Index of the first token that is wanted. */
  readonly from: number;
  /** How long to go on without a connection to the head's agent; 0: not at all. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  readonly onNews: (news: ReadingNews) => void;
}

type Ending = Exclude<ReadingAction, { kind: 'tell' | 'fail' }>;

export class RequestReader {
  readonly #order: ReaderOrder;
  #reading: Reading;
  /** For errors; `null` before it is submitted. */
  #request: number | null = null;

  constructor(order: ReaderOrder) {
    this.#order = order;
    this.#reading = beginReading(order.from, order.deadlineMs, performance.now());
  }

  /** The first token that has not been told. */
  get next(): number {
    return this.#reading.next;
  }

  /** Tells every token, each once. @throws what the agent refuses for good; REQUEST_CUT_OFF, CANCELLED */
  async read(request: number): Promise<GatheredEnd> {
    const { lease } = this.#order;
    this.#request = request;
    for (;;) {
      const ending = await this.#gather(request);
      if (ending.kind === 'finish') return ending.end;
      await this.#pause(ending.afterMs);
      await this.#tried(() => lease.again());
      // Without a session to take up, what the request has to say shows it.
      if (lease.held !== null) this.#connected();
    }
  }

  /** Does it again as long as it fails in a way that may pass. @throws as `read` */
  async whileLasting<Value>(work: () => Promise<Value>): Promise<Value> {
    const value = await this.#tried(work);
    this.#connected();
    return value;
  }

  async #tried<Value>(work: () => Promise<Value>): Promise<Value> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        await this.outlast(error);
      }
    }
  }

  /** Waits until it is time to try again. @throws as `read`: the error itself, or that it is too late */
  async outlast(error: unknown): Promise<void> {
    const ending = this.#failed(error);
    if (ending.kind === 'redial') await this.#pause(ending.afterMs);
  }

  #connected(): void {
    this.#give({ kind: 'connected', atMs: performance.now() });
  }

  async #gather(request: number): Promise<Ending> {
    const { ring, lease, signal } = this.#order;
    const broken = new AbortController();
    // A connection with one half of it broken is broken: both are made anew.
    void lease.held?.broken.then((error) => {
      broken.abort(error);
    });
    const at = { session: lease.session, request, from: this.#reading.next };
    try {
      for await (const event of ring.gatherFrom(at, AbortSignal.any([signal, broken.signal]))) {
        const ending = this.#give({ kind: 'event', event, atMs: performance.now() });
        if (ending !== null) return ending;
      }
    } catch (error) {
      return this.#failed(error);
    }
    const facts = { method: 'Outer.Gather', found: 'the end of the stream', expected: 'the end of the request' };
    return this.#failed(new P4Error('RPC_FAILED', facts));
  }

  #failed(error: unknown): Ending {
    const { signal } = this.#order;
    if (signal.aborted) throw interruption(signal);
    if (!(error instanceof P4Error)) throw error;
    const ending = this.#give({ kind: 'failed', error, atMs: performance.now() });
    if (ending === null) throw error;
    return ending;
  }

  /** @returns what the reader has to do now, `null` to read on */
  #give(input: ReadingInput): Ending | null {
    const { reading, actions } = readingStep(this.#reading, input);
    this.#reading = reading;
    for (const action of actions) {
      if (action.kind === 'tell') this.#order.onNews(action.news);
      else if (action.kind === 'fail') throw this.#errorOf(action.failure);
      else return action;
    }
    return null;
  }

  #errorOf(failure: ReadingFailure): P4Error {
    if (failure.kind === 'refused') return failure.error;
    const { last, tries, downMs } = failure;
    const facts = {
      ...last.facts,
      ...(this.#request === null ? {} : { request: this.#request }),
      ...{ node: 0, host: this.#order.ring.headHost, error: last.code },
      tried: `${tries === 1 ? 'once' : `${tries} times`} in ${Math.round(downMs / 1000)} s`,
    };
    return new P4Error('REQUEST_CUT_OFF', facts, last);
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#order;
    try {
      await delay(ms, undefined, { signal });
    } catch (error) {
      if (signal.aborted) throw interruption(signal);
      throw error;
    }
  }
}

/** A session of a ring and what is asked in it, with the moment of every token as its client sees it. */
import { P4Error } from '../../protocol/errors.ts';
import type { SettledStage } from '../../protocol/messages.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import type { HeldSession, RingCalls } from '../../provisioner/ring-calls.ts';

export interface SessionAsk {
  readonly prompt: readonly number[];
  readonly tokens: number;
  /** Called at each token, with how many there are. */
  readonly onToken?: (count: number) => void;
}

export interface SessionRun {
  readonly submittedMs: number;
  readonly tokens: readonly number[];
  /** When each token came. */
  readonly timesMs: readonly number[];
}

export interface SettledRun extends SessionRun {
  /** In ring order. */
  readonly stages: readonly SettledStage[];
}

export class RingSession {
  readonly #calls: RingCalls;
  readonly #held: HeldSession;
  readonly #signal: AbortSignal;

  private constructor(calls: RingCalls, held: HeldSession, signal: AbortSignal) {
    this.#calls = calls;
    this.#held = held;
    this.#signal = signal;
  }

  static async open(calls: RingCalls, signal: AbortSignal): Promise<RingSession> {
    return new RingSession(calls, await calls.openSession(signal), signal);
  }

  /** Greedy tokens after what the session holds and a prompt, the end of generation ignored, with all receipts. */
  async ask(ask: SessionAsk): Promise<SettledRun> {
    const { request, run, reason } = await this.#run(ask);
    if (reason !== 'length') throw new P4Error('RPC_FAILED', { what: 'finish reason', found: reason });
    const { state, stages } = await this.#calls.settle(this.#held.session, request, this.#signal);
    if (state !== 'settled') throw new P4Error('RPC_FAILED', { what: 'settlement', found: state });
    return { ...run, stages };
  }

  /** The same, for as long as the session lasts: whoever closes it ends this. */
  async keepAsking(ask: SessionAsk): Promise<SessionRun> {
    const { run, reason } = await this.#run(ask);
    if (reason !== 'cancelled') throw new P4Error('RPC_FAILED', { what: 'finish reason', found: reason });
    return run;
  }

  close(): Promise<void> {
    return this.#held.letGo();
  }

  async #run({ prompt, tokens: count, onToken }: SessionAsk): Promise<{
    readonly request: number;
    readonly run: SessionRun;
    readonly reason: string;
  }> {
    const { session } = this.#held;
    const submittedMs = performance.now();
    const { request } = await this.#calls.submit(
      {
        ...{ session, parseSpecial: false, sampling: JSON.stringify({ ...defaultSampling, temperature: 0 }) },
        ...{ maxTokens: count, stop: [], ignoreEnd: true, prompt: 'tokens', tokens: { ids: prompt } },
      },
      this.#signal,
    );
    const tokens: number[] = [];
    const timesMs: number[] = [];
    for await (const event of this.#calls.gather(session, request, this.#signal)) {
      if (event.event === 'token') {
        timesMs.push(performance.now());
        tokens.push(event.token.token);
        onToken?.(tokens.length);
      } else if (event.event === 'end') {
        return { request, run: { submittedMs, tokens, timesMs }, reason: event.end.reason };
      }
    }
    throw new P4Error('RPC_FAILED', { method: 'Outer.Gather', found: 'no end' });
  }
}

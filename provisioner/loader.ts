/** The loader's shell: it carries out what `loaderStep` decides, and tells it what came of it. */
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { failpoint } from './failpoint.ts';
import { failureOf, type Failure } from './failure.ts';
import { interruption } from './interrupt.ts';
import { pointAfter, pointBefore } from './loader-failpoint.ts';
import {
  beginLoad,
  loaderStep,
  type AgentCommand,
  type KeptLoad,
  type KeptPhase,
  type LoaderEffect,
  type LoaderInput,
  type LoaderState,
  type LoadName,
  type LoadOrder,
  type LoadOutcome,
} from './loader-step.ts';

/** What the loader acts on. */
export interface LoaderPort {
  /** Returns when the generation file is durable (G2). */
  keep(load: LoadName, phase: KeptPhase): Promise<void>;
  /** Returns when the generation file durably says what it said before this load. */
  restore(load: LoadName): Promise<void>;
  /** Returns when the agent has done it; has a deadline of its own. */
  command(command: AgentCommand, order: CommandOrder): Promise<void>;
}

export interface CommandOrder {
  readonly host: HostName;
  readonly load: LoadName;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

export interface LoadRun {
  readonly order: LoadOrder;
  /** What the generation file of this ring holds, `null` when there is none. */
  readonly kept: KeptLoad | null;
  /** What to use where that cannot be told again. */
  readonly fresh: LoadName;
  readonly port: LoaderPort;
  /** Cancels the load: what it has told to agents is withdrawn. */
  readonly signal: AbortSignal;
}

/**
 * Loads a ring, or fails and cleans up; both are outcomes.
 * @throws what is no `P4Error`: a bug
 */
export async function runLoader({ order, kept, fresh, port, signal }: LoadRun): Promise<LoadOutcome> {
  const shell = new LoaderShell(order, port);
  const cancel = (): void => {
    shell.give({ kind: 'cancel', failure: failureOf(interruption(signal)) });
  };
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel, { once: true });
  shell.give({ kind: 'begin', kept, fresh });
  try {
    return await shell.outcome;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

class LoaderShell {
  readonly outcome: Promise<LoadOutcome>;
  readonly #port: LoaderPort;
  readonly #calls = new Map<string, AbortController>();
  #state: LoaderState;
  /** What was last given to be kept. */
  #keeping = '';
  #finish: (outcome: LoadOutcome) => void = () => undefined;
  #break: (bug: unknown) => void = () => undefined;

  constructor(order: LoadOrder, port: LoaderPort) {
    this.#state = beginLoad(order);
    this.#port = port;
    this.outcome = new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#break = reject;
    });
  }

  give(input: LoaderInput): void {
    failpoint(pointAfter(input, this.#keeping) ?? '');
    const { state, effects } = loaderStep(this.#state, input);
    this.#state = state;
    for (const effect of effects) {
      if (effect.kind === 'keep') this.#keeping = effect.phase;
      failpoint(pointBefore(effect) ?? '');
      this.#run(effect);
    }
  }

  #run(effect: LoaderEffect): void {
    switch (effect.kind) {
      case 'keep':
        this.#await(this.#port.keep(effect.load, effect.phase), { kind: 'kept' }, keepFailed);
        return;
      case 'restore':
        this.#await(this.#port.restore(effect.load), { kind: 'kept' }, keepFailed);
        return;
      case 'command': {
        const { command, host, load } = effect;
        const controller = new AbortController();
        this.#calls.set(callName(command, host), controller);
        this.#await(
          this.#port.command(command, { host, load, signal: controller.signal }),
          { kind: 'done', command, host },
          (failure) => ({ kind: 'failed', command, host, failure }),
        );
        return;
      }
      case 'abandon':
        this.#calls.get(callName(effect.command, effect.host))?.abort(new P4Error('CANCELLED', { by: 'the loader' }));
        return;
      case 'finish':
        this.#finish(effect.outcome);
        return;
    }
  }

  #await(work: Promise<void>, done: LoaderInput, failed: (failure: Failure) => LoaderInput): void {
    work
      .then(
        () => {
          this.give(done);
        },
        (error: unknown) => {
          if (!(error instanceof P4Error)) throw error;
          this.give(failed(failureOf(error)));
        },
      )
      .catch(this.#break);
  }
}

const keepFailed = (failure: Failure): LoaderInput => ({ kind: 'keep-failed', failure });

const callName = (command: AgentCommand, host: HostName): string => `${command} ${host}`;

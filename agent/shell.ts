/**
 * Acts on what `step` decides: commits the records, then runs the effects.
 *
 * - J2, J8: a `committed` effect runs when all records up to its own step are durable, in order.
 * - J7: an `immediate` effect runs at once; compute never waits for the journal.
 * - J1: a step whose admission the journal cannot take is not taken at all. After a failed write nothing new is admitted,
 *   and nothing is told that was not written down.
 */
import { P4Error } from '../protocol/errors.ts';
import { effectTiming, type Effect, type EffectKind } from './effects.ts';
import type { Input } from './inputs.ts';
import type { Journal } from './journal/journal.ts';
import type { Log } from './log.ts';
import type { JournalRecord } from './records.ts';
import type { AgentState } from './state.ts';
import { step } from './step.ts';

/** One for each kind of effect; none of them throws. */
export type EffectRunners = {
  readonly [Kind in EffectKind]: (effect: Extract<Effect, { kind: Kind }>) => void;
};

export interface ShellOptions {
  readonly initial: AgentState;
  readonly journal: Pick<Journal, 'commit' | 'admission'>;
  readonly runners: EffectRunners;
  /** What becomes of a committed effect whose records could not be written. */
  readonly abandon: (effect: Effect, error: P4Error) => void;
  readonly log: Log;
}

export class Shell {
  readonly #options: ShellOptions;
  #state: AgentState;
  /**
   * Records of the step whose immediate effects run: those do not wait even for the records to be handed over (J7). An
   * effect that dispatches again meets them handed over, so that records keep the order of their steps.
   */
  #uncommitted: readonly JournalRecord[] = [];
  /** The newest commit on its way, `null` when all is durable; commits resolve in order. */
  #newest: Promise<void> | null = null;

  constructor(options: ShellOptions) {
    this.#options = options;
    this.#state = options.initial;
  }

  get state(): AgentState {
    return this.#state;
  }

  dispatch(input: Input): void {
    this.#commitRest();
    const { state, records, effects } = step(this.#state, input);
    const refusal = this.#refusal(records);
    if (refusal !== null) {
      if ('call' in input) this.#options.runners.reply({ kind: 'reply', call: input.call, reply: refusal });
      return;
    }
    this.#state = state;
    this.#uncommitted = records;
    const later = effects.filter(({ kind }) => effectTiming[kind] === 'committed');
    for (const effect of effects) if (effectTiming[effect.kind] === 'immediate') this.#run(effect);
    this.#commitRest();
    if (later.length === 0) return;
    if (this.#newest === null) for (const effect of later) this.#run(effect);
    else this.#runAfter(this.#newest, later);
  }

  /** Resolves when everything dispatched so far is durable or has failed. */
  async settled(): Promise<void> {
    await this.#newest?.catch(() => undefined);
  }

  #refusal(records: readonly JournalRecord[]): { kind: 'refused'; error: P4Error } | null {
    for (const record of records) {
      const { kind } = record;
      if (kind !== 'load-admitted' && kind !== 'session-opened' && kind !== 'request-admitted') continue;
      const answer = this.#options.journal.admission(record);
      if (answer.kind === 'refused') return answer;
    }
    return null;
  }

  #commitRest(): void {
    const records = this.#uncommitted;
    if (records.length === 0) return;
    this.#uncommitted = [];
    const commit = this.#options.journal.commit(records);
    this.#newest = commit;
    const done = (): void => {
      if (this.#newest === commit) this.#newest = null;
    };
    commit.then(done, (error: unknown) => {
      done();
      if (!(error instanceof P4Error)) throw error;
      this.#options.log({ event: 'journal-failed', code: error.code });
    });
  }

  #runAfter(commit: Promise<void>, effects: readonly Effect[]): void {
    commit.then(
      () => {
        for (const effect of effects) this.#run(effect);
      },
      (error: unknown) => {
        if (!(error instanceof P4Error)) throw error;
        for (const effect of effects) this.#options.abandon(effect, error);
      },
    );
  }

  #run(effect: Effect): void {
    (this.#options.runners[effect.kind] as (effect: Effect) => void)(effect);
  }
}

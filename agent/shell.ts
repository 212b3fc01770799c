/**
 * Acts on what `step` decides: commits the records, then runs the effects.
 *
 * - J2, J8: a `committed` effect runs when all records up to its own step are durable, in order.
 * - J7: an `immediate` effect runs at once; compute never waits for the journal.
 * - J1: a step whose admission the journal cannot take is not taken at all.
 * - A journal that cannot be written is opened again until it can: what was not written is kept, in order, and written
 *   then. Meanwhile nothing new is admitted, callers are told why, and readers wait.
 */
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { StepMeter } from './metrics/ring-meters.ts';
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
  readonly journal: Pick<Journal, 'commit' | 'admission' | 'reopen'>;
  readonly runners: EffectRunners;
  /** Told why the journal cannot be written, and `null` when it can again. */
  readonly onJournal: (failure: P4Error | null) => void;
  readonly log: Log;
  /** Counts what is taken and what becomes durable; `null` counts nothing. */
  readonly meter: StepMeter | null;
}

/** A step that is not durable, or waits behind one that is not. */
interface Undurable {
  readonly records: readonly JournalRecord[];
  readonly effects: readonly Effect[];
}

export class Shell {
  readonly #options: ShellOptions;
  #state: AgentState;
  /**
   * Records of the step whose immediate effects run: those do not wait even for the records to be handed over (J7). An
   * effect that dispatches again meets them handed over, so that records keep the order of their steps.
   */
  #uncommitted: readonly JournalRecord[] = [];
  /** In the order of their steps. */
  #undurable: Undurable[] = [];
  #failure: P4Error | null = null;
  #whenDurable: (() => void)[] = [];
  #isStopped = false;

  constructor(options: ShellOptions) {
    this.#options = options;
    this.#state = options.initial;
  }

  get state(): AgentState {
    return this.#state;
  }

  /** Why the journal cannot be written; `null` while it can. */
  get journalFailure(): P4Error | null {
    return this.#failure;
  }

  dispatch(input: Input): void {
    this.#handOver([]);
    const { state, records, effects } = step(this.#state, input);
    const refusal = this.#refusal(records);
    if (refusal !== null) {
      if ('call' in input) this.#options.runners.reply({ kind: 'reply', call: input.call, reply: refusal });
      return;
    }
    this.#state = state;
    this.#options.meter?.taken(input.kind, records, state);
    this.#uncommitted = records;
    for (const effect of effects) if (effectTiming[effect.kind] === 'immediate') this.#run(effect);
    this.#handOver(effects.filter(({ kind }) => effectTiming[kind] === 'committed'));
  }

  /** Resolves when everything dispatched so far is durable, or the journal cannot be written. */
  async settled(): Promise<void> {
    if (this.#undurable.length === 0 || this.#failure !== null) return;
    await new Promise<void>((resolve) => {
      this.#whenDurable.push(resolve);
    });
  }

  /** Gives up on a journal that cannot be written. */
  stop(): void {
    this.#isStopped = true;
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

  /** Gives the records of the last step to the journal; `effects` run when those, and all before, are durable. */
  #handOver(effects: readonly Effect[]): void {
    const records = this.#uncommitted;
    this.#uncommitted = [];
    if (records.length === 0 && this.#undurable.length === 0) {
      for (const effect of effects) this.#run(effect);
    } else if (records.length > 0 || effects.length > 0) {
      const undurable = { records, effects };
      this.#undurable.push(undurable);
      if (this.#failure !== null) this.#answerWaiting(this.#failure);
      else this.#commit(undurable);
    }
  }

  #commit({ records }: Undurable): void {
    if (records.length === 0) return;
    this.#options.journal.commit(records).then(
      () => {
        this.#durable();
      },
      (error: unknown) => {
        if (!(error instanceof P4Error)) throw error;
        this.journalFailed(error);
      },
    );
  }

  /** Commits end in their order: the oldest step is durable, and with it those behind it that wrote nothing. */
  #durable(): void {
    do {
      const { records = [], effects = [] } = this.#undurable.shift() ?? {};
      if (records.length > 0) this.#options.meter?.durable(records);
      for (const effect of effects) this.#run(effect);
    } while (this.#undurable[0]?.records.length === 0);
    if (this.#undurable.length === 0) this.#tellSettled();
  }

  /**
   * A commit failed, and with it every one behind it, or the journal's own work did, which no commit waits for. The first
   * failure is told; from then on the journal is opened again until it can be.
   */
  journalFailed(error: P4Error): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    this.#options.log({ event: 'journal-failed', code: error.code });
    this.#options.onJournal(error);
    this.#answerWaiting(error);
    this.#tellSettled();
    this.#reopenLater();
  }

  /** Callers do not wait for the disk; what they asked for is done, or will be. */
  #answerWaiting(error: P4Error): void {
    this.#undurable = this.#undurable.map(({ records, effects }) => {
      const [replies, others] = [effects.filter(isReply), effects.filter((effect) => !isReply(effect))];
      for (const { call } of replies) {
        this.#options.runners.reply({ kind: 'reply', call, reply: { kind: 'refused', error } });
      }
      return { records, effects: others };
    });
  }

  #reopenLater(): void {
    setTimeout(() => {
      void this.#reopen();
    }, limits.journalRetryMs).unref();
  }

  async #reopen(): Promise<void> {
    if (this.#isStopped) return;
    const { journal, log, onJournal } = this.#options;
    try {
      await journal.reopen();
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
      log({ event: 'journal-still-failing', code: error.code });
      this.#reopenLater();
      return;
    }
    this.#failure = null;
    log({ event: 'journal-reopened', steps: this.#undurable.length });
    onJournal(null);
    for (const undurable of this.#undurable) this.#commit(undurable);
  }

  #tellSettled(): void {
    for (const resolve of this.#whenDurable.splice(0)) resolve();
  }

  #run(effect: Effect): void {
    (this.#options.runners[effect.kind] as (effect: Effect) => void)(effect);
  }
}

const isReply = (effect: Effect): effect is Extract<Effect, { kind: 'reply' }> => effect.kind === 'reply';

/**
 * What `agent/shell.ts` does, in simulated time: steps, commits, then what has to wait for the commit.
 *
 * - J2, J8: a `committed` effect runs when all records up to its own step are durable, in order.
 * - While the journal cannot be written, what was decided is kept and written in order once it can; nothing new is
 *   admitted meanwhile.
 */
import type { CallId } from '../../agent/calls.ts';
import type { Effect } from '../../agent/effects.ts';
import { effectTiming } from '../../agent/effects.ts';
import type { Input } from '../../agent/inputs.ts';
import type { JournalRecord } from '../../agent/records.ts';
import type { AgentState } from '../../agent/state.ts';
import { step, type Step } from '../../agent/step.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalModel } from './journal-model.ts';
import type { SeededRandom } from './seeded-random.ts';

export interface ShellOutside {
  readonly random: SeededRandom;
  readonly journal: JournalModel;
  readonly run: (effect: Effect) => void;
  /** After each step that was taken, before anything comes of it. */
  readonly taken: (before: AgentState, input: Input, step: Step) => void;
  /** Later, unless the agent has ended. */
  readonly after: (ms: number, run: () => void) => void;
}

interface Batch {
  readonly records: JournalRecord[];
  effects: Effect[];
}

export class ShellModel {
  readonly #outside: ShellOutside;
  state: AgentState;
  /** What is not durable, oldest first. */
  readonly #pending: Batch[] = [];
  /** How many of those are being written. */
  #writing = 0;
  /** The latest write failed: until one does not, nothing new is admitted. */
  #isFailed = false;

  constructor(initial: AgentState, outside: ShellOutside) {
    this.state = initial;
    this.#outside = outside;
  }

  dispatch(input: Input): void {
    const before = this.state;
    const next = step(before, input);
    if (this.#isFailed && next.records.some(isAdmission)) {
      if ('call' in input) this.#refuse(input.call);
      return;
    }
    this.#outside.taken(before, input, next);
    this.state = next.state;
    const later = next.effects.filter(({ kind }) => effectTiming[kind] === 'committed');
    for (const effect of next.effects) if (effectTiming[effect.kind] === 'immediate') this.#outside.run(effect);
    if (next.records.length > 0) this.#pending.push({ records: [...next.records], effects: later });
    else if (later.length > 0) {
      const last = this.#pending.at(-1);
      if (last === undefined) for (const effect of later) this.#outside.run(effect);
      else last.effects.push(...later);
    }
    if (this.#isFailed) this.#refuseWaiting();
    this.#write();
  }

  /** The agent ends now: what was on its way to the disk is durable or is not. */
  end(): void {
    const { journal, random } = this.#outside;
    const written = journal.isFailing || random.oneIn(2) ? 0 : this.#writing;
    for (const { records } of this.#pending.splice(0, written)) journal.add(records);
  }

  /** Callers do not wait for the disk; what they asked for is done, or will be. */
  #refuseWaiting(): void {
    for (const batch of this.#pending) {
      for (const effect of batch.effects) if (effect.kind === 'reply') this.#refuse(effect.call);
      batch.effects = batch.effects.filter(({ kind }) => kind !== 'reply');
    }
  }

  #refuse(call: CallId): void {
    const error = new P4Error('JOURNAL_WRITE_FAILED', {});
    this.#outside.run({ kind: 'reply', call, reply: { kind: 'refused', error } });
  }

  #write(): void {
    if (this.#writing > 0 || this.#pending.length === 0) return;
    this.#writing = this.#pending.length;
    const { journal, random, after, run } = this.#outside;
    after(random.between(1, random.oneIn(20) ? 60 : 6), () => {
      const count = this.#writing;
      if (journal.isFailing) {
        this.#isFailed = true;
        this.#refuseWaiting();
        after(limits.journalRetryMs, () => {
          this.#writing = 0;
          this.#write();
        });
        return;
      }
      this.#isFailed = false;
      const written = this.#pending.slice(0, count);
      for (const { records } of written) journal.add(records);
      this.#pending.splice(0, count);
      this.#writing = 0;
      for (const { effects } of written) for (const effect of effects) run(effect);
      this.#write();
    });
  }
}

const isAdmission = ({ kind }: JournalRecord): boolean =>
  kind === 'load-admitted' || kind === 'session-opened' || kind === 'request-admitted';

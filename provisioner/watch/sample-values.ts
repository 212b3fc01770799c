/** The metrics of one agent at one moment, by name and labels. */
import type { MetricSample, MetricSamples } from '../../protocol/messages.ts';
import type { MetricName } from '../../protocol/metric-table.ts';

export type Labels = Readonly<Record<string, string>>;

/** What was observed of a histogram, added up. */
export interface Times {
  readonly seconds: number;
  readonly count: number;
}

export class SampleValues {
  /** On the clock of the agent's process. */
  readonly atSeconds: number;
  /** Whose clock and counters these are. */
  readonly process: number;
  readonly #byName = new Map<string, MetricSample[]>();

  constructor({ atSeconds, samples }: MetricSamples, process: number) {
    this.atSeconds = atSeconds;
    this.process = process;
    for (const sample of samples) {
      const same = this.#byName.get(sample.name) ?? [];
      this.#byName.set(sample.name, same);
      same.push(sample);
    }
  }

  /** All that have these labels among theirs. */
  all(name: MetricName, labels: Labels = {}): readonly MetricSample[] {
    const wanted = Object.entries(labels);
    return (this.#byName.get(name) ?? []).filter((each) =>
      wanted.every(([label, value]) => each.labels[label] === value),
    );
  }

  /** Their sum; `null` where there is none. */
  value(name: MetricName, labels: Labels = {}): number | null {
    const found = this.all(name, labels);
    return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
  }

  /** Of a histogram. */
  times(name: MetricName, labels: Labels = {}): Times | null {
    const [found] = this.all(name, labels);
    return found === undefined ? null : { seconds: found.value, count: Number(found.count) };
  }
}

/** Two moments of one agent process, the second after the first. */
export class ValueSpan {
  readonly before: SampleValues;
  readonly after: SampleValues;

  private constructor(before: SampleValues, after: SampleValues) {
    this.before = before;
    this.after = after;
  }

  /** `null` where a moment is missing, or they are of two processes, or the same. */
  static between(before: SampleValues | undefined, after: SampleValues | undefined): ValueSpan | null {
    if (before === undefined || after === undefined || before.process !== after.process) return null;
    return after.atSeconds > before.atSeconds ? new ValueSpan(before, after) : null;
  }

  get seconds(): number {
    return this.after.atSeconds - this.before.atSeconds;
  }

  /** What a counter grew by; `null` where it is not there, or began anew. */
  growth(name: MetricName, labels: Labels = {}): number | null {
    return grown(this.before.value(name, labels), this.after.value(name, labels));
  }

  /** The same in a second. */
  rate(name: MetricName, labels: Labels = {}): number | null {
    const growth = this.growth(name, labels);
    return growth === null ? null : growth / this.seconds;
  }

  /** Mean of what a histogram observed in between, in seconds; `null` where that is nothing. */
  mean(name: MetricName, labels: Labels = {}): number | null {
    const before = this.before.times(name, labels);
    const after = this.after.times(name, labels);
    return before === null || after === null ? null : ratio(after.seconds - before.seconds, after.count - before.count);
  }
}

export const grown = (before: number | null, after: number | null): number | null =>
  before === null || after === null || after < before ? null : after - before;

/** `null` where something is not known, or the second is nothing. */
export const ratio = (of: number | null, to: number | null): number | null =>
  of === null || to === null || !(to > 0) ? null : of / to;

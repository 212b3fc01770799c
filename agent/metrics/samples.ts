/** The values of one collection, by metric: names and labels are those of the table, or it does not compile. */
import { metricNames, type MetricName, type metricTable } from '../../protocol/metric-table.ts';
import type { DurationCounts } from './duration-counts.ts';

type Table = typeof metricTable;

export type LabelsOf<Name extends MetricName> = Readonly<Record<Table[Name]['labels'][number], string>>;

type NameOfType<Type extends string> = {
  [Name in MetricName]: Table[Name]['type'] extends Type ? Name : never;
}[MetricName];

export type ValueName = NameOfType<'counter' | 'gauge'>;
export type InfoName = NameOfType<'info'>;
export type HistogramName = NameOfType<'histogram'>;

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A histogram's state, copied. */
export interface HistogramSample {
  readonly labels: Readonly<Record<string, string>>;
  /** Not added up, one more than there are bounds. */
  readonly counts: Float64Array;
  readonly sum: number;
  readonly count: number;
}

export class Samples {
  /** When they were gathered, on a clock that only goes forward, in milliseconds. */
  readonly atMs: number;
  readonly #values = new Map<MetricName, Sample[]>();
  readonly #histograms = new Map<MetricName, HistogramSample[]>();

  constructor(atMs: number) {
    this.atMs = atMs;
  }

  /** Not a number: not known, and left out. */
  add<Name extends ValueName>(name: Name, labels: LabelsOf<Name>, value: number): void {
    if (!Number.isNaN(value)) this.#push(name, labels, value);
  }

  addState<Name extends ValueName>(name: Name, labels: LabelsOf<Name>, isTrue: boolean): void {
    this.#push(name, labels, isTrue ? 1 : 0);
  }

  addInfo<Name extends InfoName>(name: Name, labels: LabelsOf<Name>): void {
    this.#push(name, labels, 1);
  }

  addTimes<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, times: DurationCounts): void {
    const { counts, sum, count } = times;
    const samples = this.#histograms.get(name) ?? [];
    this.#histograms.set(name, samples);
    samples.push({ labels, counts: counts.slice(), sum, count });
  }

  /** In the order of the table. */
  get names(): readonly MetricName[] {
    return metricNames.filter((name) => this.#values.has(name) || this.#histograms.has(name));
  }

  values(name: MetricName): readonly Sample[] {
    return this.#values.get(name) ?? [];
  }

  histograms(name: MetricName): readonly HistogramSample[] {
    return this.#histograms.get(name) ?? [];
  }

  #push(name: MetricName, labels: Readonly<Record<string, string>>, value: number): void {
    const samples = this.#values.get(name) ?? [];
    this.#values.set(name, samples);
    samples.push({ labels, value });
  }
}

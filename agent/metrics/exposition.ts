/**
 * Samples as Prometheus reads them, in its text format or as OpenMetrics: prom-client writes, in slices between which the
 * event loop runs, so that no token waits for a scrape.
 */
import { setImmediate } from 'node:timers/promises';
import { Counter, Gauge, Histogram, openMetricsContentType, prometheusContentType, Registry } from 'prom-client';

import { limits } from '../../protocol/limits.ts';
import type { MetricDefinition } from '../../protocol/metric-definition.ts';
import { metricTable, type MetricName } from '../../protocol/metric-table.ts';
import type { HistogramSample, Sample, Samples } from './samples.ts';

export const expositionFormats = ['text', 'openmetrics'] as const;
export type ExpositionFormat = (typeof expositionFormats)[number];

export const contentTypes: Readonly<Record<ExpositionFormat, string>> = {
  text: prometheusContentType,
  openmetrics: openMetricsContentType,
};

/** @returns the text, and how long it took of the event loop */
export async function exposition(
  samples: Samples,
  format: ExpositionFormat,
): Promise<{ readonly text: string; readonly spentMs: number }> {
  const registry = registryOf(format);
  const parts: string[] = [];
  let spentMs = 0;
  let sliceMs = performance.now();
  for (const name of samples.names) {
    const written = writtenName(name, format);
    registry.registerMetric(metricOf(samples, name, written));
    parts.push(await registry.getSingleMetricAsString(written));
    const ranMs = performance.now() - sliceMs;
    if (ranMs < limits.metricSliceMs) continue;
    spentMs += ranMs;
    await setImmediate();
    sliceMs = performance.now();
  }
  spentMs += performance.now() - sliceMs;
  return { text: format === 'text' ? `${parts.join('\n\n')}\n` : `${parts.join('\n')}\n# EOF\n`, spentMs };
}

function registryOf(format: ExpositionFormat) {
  switch (format) {
    case 'text':
      return new Registry();
    case 'openmetrics': {
      const registry = new Registry<typeof openMetricsContentType>();
      registry.setContentType(openMetricsContentType);
      return registry;
    }
  }
}

/** OpenMetrics names a counter without its suffix, and writes the suffix with each value. */
const writtenName = (name: MetricName, format: ExpositionFormat): string =>
  format === 'openmetrics' && metricTable[name].type === 'counter' ? name.replace(/_total$/, '') : name;

/** Values that are there already: prom-client's own counting would look up labels, and allocate, for each. */
function metricOf(samples: Samples, name: MetricName, written: string): Counter | Gauge | Histogram {
  const { type, help, labels: labelNames, buckets }: MetricDefinition = metricTable[name];
  const configuration = { name: written, help, labelNames, registers: [] };
  switch (type) {
    case 'counter':
      return new FilledCounter(configuration, samples.values(name));
    case 'gauge':
    case 'info':
      return new FilledGauge(configuration, samples.values(name));
    case 'histogram':
      return new FilledHistogram({ ...configuration, bounds: buckets ?? [] }, samples.histograms(name));
  }
}

interface Configuration {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registers: never[];
}

class FilledCounter extends Counter {
  readonly #samples: readonly Sample[];

  constructor(configuration: Configuration, samples: readonly Sample[]) {
    super(configuration);
    this.#samples = samples;
  }

  override async get(): ReturnType<Counter['get']> {
    return { ...(await super.get()), values: [...this.#samples] };
  }
}

class FilledGauge extends Gauge {
  readonly #samples: readonly Sample[];

  constructor(configuration: Configuration, samples: readonly Sample[]) {
    super(configuration);
    this.#samples = samples;
  }

  override async get(): ReturnType<Gauge['get']> {
    return { ...(await super.get()), values: [...this.#samples] };
  }
}

type HistogramValues = Awaited<ReturnType<Histogram['get']>>['values'];

class FilledHistogram extends Histogram {
  /** One without observations: its `get` asks its own `getForPromString`, which here would come back. */
  readonly #empty: Histogram;
  readonly #bounds: readonly number[];
  readonly #samples: readonly HistogramSample[];
  readonly #name: string;

  constructor(
    { bounds, ...configuration }: Configuration & { readonly bounds: readonly number[] },
    samples: readonly HistogramSample[],
  ) {
    super({ ...configuration, buckets: [...bounds] });
    this.#empty = new Histogram(configuration);
    this.#bounds = bounds;
    this.#samples = samples;
    this.#name = configuration.name;
  }

  override async get(): ReturnType<Histogram['get']> {
    return { ...(await this.#empty.get()), values: this.#samples.flatMap((sample) => this.#values(sample)) };
  }

  /** What the registry asks instead, where it is there. */
  getForPromString(): ReturnType<Histogram['get']> {
    return this.get();
  }

  #values({ labels, counts, sum, count }: HistogramSample): HistogramValues {
    const name = this.#name;
    let below = 0;
    const values: HistogramValues = this.#bounds.map((bound, index) => {
      below += counts[index] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le: bound, ...labels }, value: below };
    });
    values.push({ metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: count });
    values.push({ metricName: `${name}_sum`, labels, value: sum });
    values.push({ metricName: `${name}_count`, labels, value: count });
    return values;
  }
}

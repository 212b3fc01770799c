/** Which series an expression reads: names as Prometheus has them, and the metric of the table that each belongs to. */
import { isMetricName, metricTable, type MetricName } from '../protocol/metric-table.ts';
import type { MetricDefinition } from '../protocol/metric-definition.ts';

/** Names of recorded series have colons in them. */
const seriesName = /(?<![\w:"$])(?:(?:p4|process)_\w+|(?:ring|stage|link|host):[\w:]+)/g;

/** Recorded and scraped series that an expression names. */
export const seriesIn = (expression: string): readonly string[] => [
  ...new Set([...expression.matchAll(seriesName)].map(([name]) => name)),
];

export const isRecorded = (series: string): boolean => series.includes(':');

/** The metric of the table that a scraped series is part of; `null` where the table has none. */
export function metricOf(series: string): MetricName | null {
  if (isMetricName(series)) return isHistogram(series) ? null : series;
  const name = series.replace(/_(bucket|sum|count)$/, '');
  return isMetricName(name) && isHistogram(name) ? name : null;
}

function isHistogram(name: MetricName): boolean {
  const definition: MetricDefinition = metricTable[name];
  return definition.type === 'histogram';
}

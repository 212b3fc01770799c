/**
 * Every metric that an agent shows: name, type, unit, labels, help, buckets, when it is there, and what others call it.
 *
 * Instruments, dashboards, rules and alerts are checked against this table. Names follow Prometheus: base units, a unit at
 * the end, `_total` for counters; the `process_*` names are those that all client libraries share. The generation is in no
 * label and no value (G4).
 */
import { agentMetrics } from './metric-table-agent.ts';
import { hostMetrics } from './metric-table-host.ts';
import { ringMetrics } from './metric-table-ring.ts';
import { stageMetrics } from './metric-table-stage.ts';

export const metricTable = { ...ringMetrics, ...stageMetrics, ...agentMetrics, ...hostMetrics } as const;

export type MetricName = keyof typeof metricTable;

export const metricNames = Object.keys(metricTable).filter(isMetricName);

export function isMetricName(name: string): name is MetricName {
  return Object.hasOwn(metricTable, name);
}

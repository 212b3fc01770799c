/** METRICS.md: the table of metrics for people, and what others call the same. Made from the table; a test holds it. */
import { appearances, labelBounds, type LabelName, type MetricDefinition } from '../../protocol/metric-definition.ts';
import { metricNames, metricTable } from '../../protocol/metric-table.ts';

export const metricDocumentName = 'METRICS.md';

/** Prettier pads the tables. */
export function metricDocument(): string {
  const entries = metricNames.map((name): readonly [string, MetricDefinition] => [name, metricTable[name]]);
  const lines = [
    '# Metrics',
    '',
    'Every agent shows these at `http://127.0.0.1:7401/metrics`, on its own host alone, and at',
    '`https://ADDRESS:7401/metrics` to holders of the fleet’s `monitor` and `operator` certificates. This page is made from',
    '`protocol/metric-table.ts` by `npm run metrics:document`.',
    '',
    'Shares are quotients of rates: the idle share of a stage is `1 - rate(p4_stage_compute_seconds_total[1m])`, its share of',
    'the pipeline’s bubble is what is left of `rate(p4_ring_active_seconds_total[1m])`; the agent’s CPU for a token is',
    '`rate(process_cpu_seconds_total[1m]) / rate(p4_ring_generated_tokens_total[1m])`; a hop without the receiver’s computing is',
    '`rate(p4_link_acknowledgement_seconds_sum[1m])` less `rate(p4_link_held_seconds_total[1m])`, a frame.',
    '',
    '## What others call the same',
    '',
    ...table(
      ['p4', 'vLLM', 'llama-server', 'OpenTelemetry'],
      entries.flatMap(([name, { elsewhere }]) =>
        elsewhere === undefined
          ? []
          : [[code(name), ...[elsewhere.vllm, elsewhere.llamaServer, elsewhere.openTelemetry].map(code)]],
      ),
    ),
    '',
    '## All of them',
    '',
    ...table(
      ['metric', 'type', 'labels', 'what it says', 'there'],
      entries.map(([name, { type, labels, help, appears }]) => [
        ...[code(name), type, labels.map(code).join(' ')],
        ...[help.replaceAll('|', '\\|'), appearances[appears]],
      ]),
    ),
    '',
    '## Labels',
    '',
    ...table(
      ['label', 'values'],
      labelNames.map((label) => [code(label), labelBounds[label]]),
    ),
    '',
    '## Buckets',
    '',
    ...table(
      ['histogram', 'upper bounds, in seconds'],
      entries.flatMap(([name, { buckets }]) => (buckets === undefined ? [] : [[code(name), buckets.join(' ')]])),
    ),
  ];
  return `${lines.join('\n')}\n`;
}

const labelNames = Object.keys(labelBounds).filter((name): name is LabelName => Object.hasOwn(labelBounds, name));

const code = (text: string | undefined): string => (text === undefined ? '' : `\`${text}\``);

const table = (titles: readonly string[], rows: readonly (readonly string[])[]): readonly string[] =>
  [titles, titles.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);

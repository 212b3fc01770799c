/** What the table of metrics says of each: the one place that names, units, labels and help come from. */

export interface MetricDefinition {
  /** `info` is a gauge that is always 1 and says what it says by its labels. */
  readonly type: 'counter' | 'gauge' | 'histogram' | 'info';
  readonly unit: MetricUnit;
  readonly labels: readonly LabelName[];
  /** One sentence, as a scrape shows it. */
  readonly help: string;
  /** Of a histogram: upper bounds, ascending, in the metric's unit. */
  readonly buckets?: readonly number[];
  readonly appears: Appearance;
  /** What others call the same. */
  readonly elsewhere?: ForeignNames;
}

/** Base units, or what is counted. */
export type MetricUnit =
  | 'seconds'
  | 'bytes'
  | 'ratio'
  | 'state'
  | 'tokens'
  | 'rows'
  | 'cells'
  | 'requests'
  | 'sessions'
  | 'frames'
  | 'records'
  | 'events';

export interface ForeignNames {
  readonly vllm?: string;
  readonly llamaServer?: string;
  /** OpenTelemetry's semantic conventions for what generates text (`gen_ai`). */
  readonly openTelemetry?: string;
}

/** When an agent's scrape has the metric. */
export const appearances = {
  always: 'in every scrape',
  ring: 'where a ring has a stage on this host',
  load: 'where a ring became ready in a load that this agent process has seen from its start',
  head: 'where the head of a ring is on this host',
  'first-hour': 'where the head is, and the agent process saw a hundred such times in the first hour of the load',
  stage: 'where a stage of this host has told its figures',
  'link-out': 'where a ring leaves this host for another agent',
  'link-in': 'where a ring comes to this host from another agent',
  event: 'after the first of its kind',
  pressure: 'where the kernel counts pressure (/proc/pressure)',
  gpu: 'where the host has an NVIDIA driver that answers',
} as const;
export type Appearance = keyof typeof appearances;

/** What a label may say: how many values it can take, and which. */
export const labelBounds = {
  ring: 'names of the rings that are loaded on this host',
  stage: 'index of a stage in its ring, from 0 to 63',
  source: 'index of the stage that a link comes from, from 0 to 63',
  destination: 'index of the stage that a link leads to, from 0 to 63',
  peer: 'host at the other end of a link, one of the plan',
  phase: 'kind of a row, or phase of a ring on this host',
  reason: 'finish reason of a request (`finish.ts`)',
  code: 'error code (`errors.ts`)',
  method: 'call of `p4.proto`',
  at: 'where a generation was compared: call, link, stage',
  certificate: 'agent, authority',
  folder: 'state, slices',
  mode: 'what CPUs did: user, nice, system, idle, iowait, irq, softirq, steal',
  resource: 'what was waited for: cpu, memory, io',
  gpu: 'index of a GPU on its host, from 0 to 63',
  plan: 'first 12 digits of the plan’s digest',
  model: 'name of the model’s file, of 64 characters at most',
  decode: 'fast, exact',
  running: 'requests at once: 1, 2, 3-4, 5-8, 9-16, 17+',
  context: 'used share of the KV cache: 0-25%, 25-50%, 50-75%, 75-100%',
  beside: 'rows of prompts for each generated token: 0-1, 1-4, 4-16, 16+',
  stages: 'how many stages a ring has, to 64',
  layers: 'first and last layer of a stage',
  device: 'cpu, gpu',
  threads: 'threads that compute, to 1024',
  version: 'release of p4',
  protocol: 'version of the protocol between machines',
  node: 'version of Node.js',
  name: 'product name of a GPU',
} as const;
export type LabelName = keyof typeof labelBounds;

/** Of times between tokens: every millisecond up to 10, then steps of a fifth to a half. */
const fineSeconds: readonly number[] = [
  ...[0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009, 0.01],
  ...[0.012, 0.014, 0.016, 0.018, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075],
];

export const tokenBuckets: readonly number[] = [...fineSeconds, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5, 10, 60];

/** Of times that a prompt is part of: to ten minutes. */
export const requestBuckets: readonly number[] = [
  ...fineSeconds,
  ...[0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2.5, 5, 7.5, 10, 20, 40, 60, 120, 300, 600],
];

/** Of one way over a network and back, one commit, one turn: from a tenth of a millisecond. */
export const hopBuckets: readonly number[] = [
  ...[0.0001, 0.0002, 0.0003, 0.0005, 0.0007, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009],
  ...[0.01, 0.0125, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2.5, 10],
];

export const upkeepBuckets: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 60, 300,
];

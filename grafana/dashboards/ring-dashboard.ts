/** One ring: whether it slows down, what requests feel, where a token's time goes. */
import type { DashboardDefinition, PanelRow } from './dashboard.ts';
import type { Query } from './panel.ts';

const ring = 'ring="$ring"';
const rate = '[$__rate_interval]';
const stageLegend = 'stage {{stage}} on {{host}}';
const linkLegend = '{{source}} → {{destination}}, {{host}} to {{peer}}';

const quantiles = (metric: string, names: readonly string[]): readonly Query[] =>
  names.map((name) => ({ expression: `ring:${metric}:${name}{${ring}}`, legend: name }));

const speed: PanelRow = {
  title: 'Is it slowing down?',
  panels: [
    {
      title: 'Decay ratio',
      shows: 'Speed now against the first hour of this load, at the same load: requests at once, context, prompts.',
      normal: 'between 0.95 and 1.05.',
      otherwise: 'below 0.95 for hours, it decays: see what grows below, journal, stages or hops.',
      ...{ unit: 'percentunit', look: { kind: 'number' }, width: 6, decimals: 1, below: 'red' },
      steps: [
        { from: 0.85, color: 'yellow' },
        { from: 0.95, color: 'green' },
      ],
      queries: [{ expression: `ring:p4_decay:ratio{${ring}}`, legend: 'of the first hour' }],
    },
    {
      title: 'Ring',
      shows: 'Whether a token can go round: every host of the ring has to say so.',
      normal: 'ready.',
      otherwise: '`npm run status` says what is lost and where.',
      ...{ unit: 'none', look: { kind: 'number' }, width: 4 },
      words: { '0': { text: 'not whole', color: 'red' }, '1': { text: 'ready', color: 'green' } },
      queries: [{ expression: `min(p4_ring_ready{${ring}})`, legend: 'ring' }],
    },
    {
      title: 'Tokens per second',
      shows: 'Tokens that came out of the ring, all requests together.',
      normal: 'rises with the requests that run at once, until the stages are busy.',
      otherwise: 'lower than at other times with as many requests: look at the decay ratio.',
      ...{ unit: 'suffix: tok/s', look: { kind: 'number' }, width: 5, decimals: 1 },
      queries: [{ expression: `ring:p4_ring_generated_tokens:rate{${ring}}`, legend: 'generated' }],
    },
    {
      title: 'Sessions',
      shows: 'Sessions that are open, requests that wait for room in the ring, and clients that wait for a session.',
      normal: 'fewer sessions than the limit, none or few requests waiting.',
      otherwise: 'at the limit, further clients wait, then are refused: close idle ones, or load the plan with more.',
      ...{ unit: 'none', look: { kind: 'number' }, width: 9 },
      queries: [
        { expression: `sum(p4_ring_sessions_open{${ring}})`, legend: 'open' },
        { expression: `sum(p4_ring_sessions_limit{${ring}})`, legend: 'limit' },
        { expression: `sum(p4_ring_requests_waiting{${ring}})`, legend: 'requests waiting' },
        { expression: `sum(p4_ring_sessions_waiting{${ring}})`, legend: 'clients waiting' },
      ],
    },
    {
      title: 'Tokens per second and journal size',
      shows: 'What comes out and what is fed in, on the axis of the journals of the ring’s hosts.',
      normal: 'speed follows the load and does not care how large the journals are.',
      otherwise: 'if speed falls as a journal grows, at the same load, open Journal: commits and checkpoints.',
      ...{ unit: 'suffix: tok/s', look: { kind: 'lines' }, width: 12 },
      queries: [
        { expression: `ring:p4_ring_generated_tokens:rate{${ring}}`, legend: 'generated' },
        { expression: `ring:p4_ring_prompt_tokens:rate{${ring}}`, legend: 'prompt' },
        {
          expression: `max by (host) (p4_journal_bytes and on (host) p4_ring_ready{${ring}})`,
          ...{ legend: 'journal of {{host}}', rightUnit: 'bytes' },
        },
      ],
    },
    {
      title: 'Speed at equal load, against the first hour',
      shows:
        'The ratio at each kind of load that occurred: requests at once, share of the KV cache, prompt rows a token.',
      normal: 'flat lines near 1.',
      otherwise: 'a line that falls for hours is decay; one that stepped down tells when something changed.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 12, most: 1.2 },
      queries: [
        {
          expression: `ring:p4_speed:ratio{${ring}}`,
          legend: '{{running}} at once, context {{context}}, prompt {{prompt}}',
        },
      ],
    },
    {
      title: 'Tokens per second of one request',
      shows:
        'How fast one request decodes, now, as the median of an hour, and in the first hour, at each kind of load.',
      normal: 'now wanders around the median, the median keeps to the first hour.',
      otherwise: 'see the ratio beside it.',
      ...{ unit: 'suffix: tok/s', look: { kind: 'lines' }, width: 12 },
      queries: [
        { expression: `ring:p4_speed:rate{${ring}}`, legend: 'now' },
        { expression: `ring:p4_speed:median{${ring}}`, legend: 'hour, {{running}} at once, {{context}}, {{prompt}}' },
        {
          expression: `ring:p4_speed:baseline{${ring}}`,
          legend: 'first hour, {{running}} at once, {{context}}, {{prompt}}',
        },
      ],
    },
    {
      title: 'Won or lost in an hour',
      shows: 'Slope of the speed at equal load over the last four hours, as a share of the first hour’s.',
      normal: 'around 0, within 1%.',
      otherwise: 'below -1% for hours the alert P4RingDecaying comes: its runbook says where to look.',
      ...{ unit: 'percentunit', look: { kind: 'states' }, width: 12, below: 'red', decimals: 1 },
      steps: [
        { from: -0.01, color: 'yellow' },
        { from: -0.005, color: 'green' },
      ],
      queries: [{ expression: `min by (running) (ring:p4_speed:slope{${ring}})`, legend: '{{running}} at once' }],
    },
  ],
};

const requests: PanelRow = {
  title: 'What requests feel',
  panels: [
    {
      title: 'Time to the first token',
      shows: 'From the admission of a request until its first token may be read: queue, prompt, one round, one commit.',
      normal: 'grows with the length of prompts.',
      otherwise: 'with a long queue the ring is full; else compare prompt tokens per second.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: quantiles('p4_ring_time_to_first_token_seconds', ['p50', 'p95']),
    },
    {
      title: 'Time between tokens',
      shows: 'Between two tokens of one request, as readers get them.',
      normal: 'p99 within three times p50; prompts of others in between make it longer.',
      otherwise: 'p50 up: stages or hops below. Only p99 up: commits, event loop, a busy neighbour.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: quantiles('p4_ring_inter_token_seconds', ['p50', 'p95', 'p99']),
    },
    {
      title: 'Time in the queue, and of whole requests',
      shows: 'Until a request’s first row goes into the ring, and from admission to end.',
      normal: 'the queue takes milliseconds.',
      otherwise: 'a queue of seconds means more requests than the ring has room for, or a ring that is suspended.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: [
        ...quantiles('p4_ring_queue_seconds', ['p50', 'p95']).map((query) => ({
          ...query,
          legend: `queue ${query.legend}`,
        })),
        ...quantiles('p4_ring_request_duration_seconds', ['p50', 'p95']).map((query) => ({
          ...query,
          legend: `request ${query.legend}`,
        })),
      ],
    },
    {
      title: 'Requests',
      shows: 'Requests in the ring and waiting, and how many ran side by side on average while any did.',
      normal: 'follows what is asked of the ring.',
      otherwise: 'waiting while few run: the ring is suspended, or its KV cache is full.',
      ...{ unit: 'none', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `sum(p4_ring_requests_running{${ring}})`, legend: 'running' },
        { expression: `sum(p4_ring_requests_waiting{${ring}})`, legend: 'waiting' },
        { expression: `ring:p4_ring_requests_running:mean{${ring}}`, legend: 'side by side' },
      ],
    },
    {
      title: 'Ends of requests, by reason',
      shows: 'Requests that ended in a minute.',
      normal: 'stop and length.',
      otherwise: '`ring-lost` are failures at the deadline: see Losses.',
      ...{ unit: 'suffix: /min', look: { kind: 'lines', isStacked: true }, width: 8 },
      queries: [
        {
          expression: `sum by (reason) (rate(p4_ring_requests_finished_total{${ring}}${rate})) * 60`,
          legend: '{{reason}}',
        },
      ],
    },
    {
      title: 'KV cache in use',
      shows:
        'Share of each stage’s KV cells that open sessions hold, and that ended ones left for prompts that begin alike; ' +
        'prompt tokens that were there already, and those of them that ended sessions had left.',
      normal: 'open below 95%; all stages alike. What is kept makes way.',
      otherwise:
        'full: close idle sessions, or load the plan with more context or fewer sessions. Much kept, nothing taken over: ' +
        'prompts do not begin alike, or clients give no cache key.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [
        {
          expression: `max by (host, stage) (p4_stage_kv_cells_used{${ring}} / p4_stage_kv_cells_limit{${ring}})`,
          legend: stageLegend,
        },
        {
          expression: `max by (host, stage) (p4_stage_kv_cells_kept{${ring}} / p4_stage_kv_cells_limit{${ring}})`,
          legend: `${stageLegend}, kept`,
        },
        {
          expression: `sum(rate(p4_ring_reused_tokens_total{${ring}}${rate}))`,
          ...{ legend: 'reused', rightUnit: 'suffix: tok/s' },
        },
        {
          expression: `sum(rate(p4_ring_adopted_tokens_total{${ring}}${rate}))`,
          ...{ legend: 'taken over', rightUnit: 'suffix: tok/s' },
        },
      ],
    },
  ],
};

const time: PanelRow = {
  title: 'Where a token’s time goes',
  panels: [
    {
      title: 'Time of a decode, by stage',
      shows: 'What a stage computes for one batch of rows, on average.',
      normal: 'stages alike, if the plan cut the layers well; grows with rows and context.',
      otherwise: 'one grows at the same load: its host. One always longer: give it fewer layers.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: [{ expression: `stage:p4_decode_seconds:mean{${ring}}`, legend: stageLegend }],
    },
    {
      title: 'Idle share, by stage',
      shows: 'Of the time in which the ring had work, what the stage waited; the mean is the pipeline’s bubble.',
      normal: 'with one request, all but one stage wait: 50% with two stages, 75% with four. Less with more requests.',
      otherwise: 'high with many requests: hops or the agents’ event loops hold frames back.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [
        { expression: `stage:p4_idle:ratio{${ring}}`, legend: stageLegend },
        { expression: `ring:p4_bubble:ratio{${ring}}`, legend: 'bubble' },
      ],
    },
    {
      title: 'CPU while computing, by stage',
      shows: 'CPU seconds that a stage gets for each second in which it computes.',
      normal: 'as many as it has threads; on a GPU less, and steady.',
      otherwise: 'falls: other processes take the CPU from it.',
      ...{ unit: 'none', look: { kind: 'lines' }, width: 8, decimals: 2 },
      queries: [{ expression: `stage:p4_cpu_per_compute:ratio{${ring}}`, legend: stageLegend }],
    },
    {
      title: 'Hops, stage by stage',
      shows:
        'Mean time over the network and back, from the stage of a row to that of a column, without the time there.',
      normal: 'as the network measures it, and half a millisecond.',
      otherwise: 'one cell larger than its neighbours: that way, or the CPU of its receiver.',
      ...{ unit: 's', look: { kind: 'matrix', row: 'source', column: 'destination' }, width: 8 },
      steps: [
        { from: 0.005, color: 'yellow' },
        { from: 0.05, color: 'red' },
      ],
      queries: [{ expression: `max by (source, destination) (link:p4_hop_seconds:mean{${ring}})`, legend: linkLegend }],
    },
    {
      title: 'Hops over time',
      shows: 'The same over time, and how long acknowledgements take with what the receiver computes meanwhile.',
      normal: 'flat; an acknowledgement takes as long as the receiving stage is busy.',
      otherwise: 'hops up: the network. Only acknowledgements up: the receiving stage.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `link:p4_hop_seconds:mean{${ring}}`, legend: `hop ${linkLegend}` },
        { expression: `link:p4_link_acknowledgement_seconds:p50{${ring}}`, legend: `acknowledged p50 ${linkLegend}` },
        { expression: `link:p4_link_acknowledgement_seconds:p99{${ring}}`, legend: `acknowledged p99 ${linkLegend}` },
      ],
    },
    {
      title: 'Traffic and windows of links',
      shows: 'Bytes over each link, and the share of time in which its window was full.',
      normal: 'windows are full while prompts are computed, and seldom else.',
      otherwise: 'full all the time: the stage behind the link is the slowest.',
      ...{ unit: 'Bps', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `link:p4_link_sent_bytes:rate{${ring}}`, legend: linkLegend },
        {
          expression: `sum by (host, peer, source, destination) (rate(p4_link_window_full_seconds_total{${ring}}${rate}))`,
          ...{ legend: `full ${linkLegend}`, rightUnit: 'percentunit' },
        },
        {
          expression: `sum by (host, peer, source, destination) (p4_link_unacknowledged_frames{${ring}} / p4_link_window_frames{${ring}})`,
          ...{ legend: `in use ${linkLegend}`, rightUnit: 'percentunit' },
        },
      ],
    },
  ],
};

const losses: PanelRow = {
  title: 'Losses',
  panels: [
    {
      title: 'Stages and links',
      shows: 'Whether each stage has its weights and each link stands.',
      normal: 'all up.',
      otherwise: 'most come back by themselves; `npm run status` has the reason.',
      ...{ unit: 'none', look: { kind: 'states' }, width: 12 },
      words: { '0': { text: 'down', color: 'red' }, '1': { text: 'up', color: 'green' } },
      queries: [
        { expression: `max by (host, stage) (p4_stage_up{${ring}})`, legend: stageLegend },
        { expression: `max by (host, peer, source, destination) (p4_link_up{${ring}})`, legend: linkLegend },
      ],
    },
    {
      title: 'Losses and returns',
      shows: 'Suspensions, returns and ends of stages within the step of the graph, and seconds suspended in a second.',
      normal: 'none.',
      otherwise: 'a stage that ends again and again: its host’s log says why (journalctl -u "p4-stage@*").',
      ...{ unit: 'none', look: { kind: 'lines' }, width: 12 },
      queries: [
        { expression: `max(increase(p4_ring_suspensions_total{${ring}}${rate}))`, legend: 'suspensions' },
        { expression: `max(increase(p4_ring_recoveries_total{${ring}}${rate}))`, legend: 'returns' },
        {
          expression: `sum by (host, stage) (increase(p4_stage_restarts_total{${ring}}${rate}))`,
          legend: `ends of ${stageLegend}`,
        },
        {
          expression: `max(rate(p4_ring_suspended_seconds_total{${ring}}${rate}))`,
          ...{ legend: 'suspended', rightUnit: 'percentunit' },
        },
      ],
    },
    {
      title: 'Rows, by what they were for',
      shows: 'Rows that the head stage ran: prompts, tokens, again after a loss, and padding of exact shapes.',
      normal: 'no recompute; padding only with `decode: exact`.',
      otherwise: 'recompute is the price of a loss.',
      ...{ unit: 'suffix: rows/s', look: { kind: 'lines', isStacked: true }, width: 8 },
      queries: [
        {
          expression: `sum by (phase) (rate(p4_stage_rows_total{${ring}, stage="0"}${rate}))`,
          legend: '{{phase}}',
        },
      ],
    },
    {
      title: 'The load',
      shows: 'What is loaded under the ring’s name, and when it was admitted.',
      normal: 'one row for each host, all of one plan.',
      otherwise: 'hosts with different plans: an unload was cut short; run it again.',
      ...{ unit: 'none', width: 8 },
      look: { kind: 'table', hidden: ['Time', 'Value', '__name__', 'instance', 'job'] },
      queries: [{ expression: `p4_ring_info{${ring}}`, legend: '{{host}}' }],
    },
    {
      title: 'Loading',
      shows: 'Share of each stage’s weights that is loaded, and how long it took.',
      normal: '100%; seconds to minutes.',
      otherwise: 'far longer than before: the disk, or weights that were not in the page cache.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [
        { expression: `max by (host, stage) (p4_stage_load_progress_ratio{${ring}})`, legend: stageLegend },
        {
          expression: `max by (host, stage) (p4_stage_load_duration_seconds{${ring}})`,
          ...{ legend: `time of ${stageLegend}`, rightUnit: 's' },
        },
        { expression: `max(p4_ring_load_duration_seconds{${ring}})`, legend: 'whole ring', rightUnit: 's' },
      ],
    },
  ],
};

export const ringDashboard: DashboardDefinition = {
  uid: 'p4-ring',
  title: 'p4 Ring',
  description: 'One ring: whether it slows down, what requests feel, and where a token’s time goes.',
  variable: { name: 'ring', label: 'Ring', series: 'p4_ring_ready', isMany: false },
  alerts: ring,
  rows: [speed, requests, time, losses],
};

/** All hosts: agents, rings, CPU, memory, disks, GPUs. */
import type { DashboardDefinition, PanelRow } from './dashboard.ts';

const host = 'host=~"$host"';
const rate = '[$__rate_interval]';
const yesNo = { '0': { text: 'no', color: 'red' }, '1': { text: 'yes', color: 'green' } };

const state: PanelRow = {
  title: 'Who is there',
  panels: [
    {
      title: 'Agents that answer',
      shows: 'Whether Prometheus gets an answer, and whether the agent calls itself ready.',
      normal: 'yes, everywhere.',
      otherwise: 'on that host: systemctl status p4-agent.',
      ...{ unit: 'none', look: { kind: 'states' }, width: 12, words: yesNo },
      queries: [
        { expression: `up{job="p4", ${host}}`, legend: '{{host}} answers' },
        { expression: `max by (host) (p4_agent_ready{${host}})`, legend: '{{host}} ready' },
      ],
    },
    {
      title: 'Rings',
      shows: 'Whether each ring is whole, as each of its hosts sees it.',
      normal: 'ready on every host.',
      otherwise: 'open Ring for the one that is not; the table beside says in which phase it is.',
      ...{ unit: 'none', look: { kind: 'states' }, width: 12 },
      words: { '0': { text: 'not whole', color: 'red' }, '1': { text: 'ready', color: 'green' } },
      queries: [{ expression: `max by (ring, host) (p4_ring_ready{${host}})`, legend: '{{ring}} on {{host}}' }],
    },
    {
      title: 'Phases of rings',
      shows: 'The phase in which each ring is on each host.',
      normal: 'ready at the head, linked or ready elsewhere.',
      otherwise: '`claimed`: no agent knows the generation; `npm run status` prints the load that brings it back.',
      ...{ unit: 'none', width: 8 },
      look: { kind: 'table', hidden: ['Time', 'Value'] },
      queries: [{ expression: `max by (ring, host, phase) (p4_ring_phase{${host}} == 1)`, legend: '{{ring}}' }],
    },
    {
      title: 'Releases',
      shows: 'The release of each agent, and when it started.',
      normal: 'one version on all hosts.',
      otherwise: 'deploy again.',
      ...{ unit: 'dateTimeAsIso', width: 8 },
      look: { kind: 'table', hidden: ['Time'] },
      queries: [
        {
          expression: `max by (host, version, protocol, node) (1000 * process_start_time_seconds{job="p4", ${host}} * on (host) group_left (version, protocol, node) p4_build_info)`,
          legend: '{{host}}',
        },
      ],
    },
    {
      title: 'Stages',
      shows: 'What each stage is: layers, device, threads, and the weights it holds.',
      normal: 'as in the plans.',
      otherwise: 'load the plan again.',
      ...{ unit: 'bytes', width: 8 },
      look: { kind: 'table', hidden: ['Time'] },
      queries: [
        {
          expression: `max by (host, ring, stage, layers, device, threads) (p4_stage_weights_bytes{${host}} * on (host, ring, stage) group_left (layers, device, threads) p4_stage_info)`,
          legend: '{{ring}} {{stage}}',
        },
      ],
    },
  ],
};

const work: PanelRow = {
  title: 'Work',
  panels: [
    {
      title: 'CPU of hosts',
      shows: 'Share of a host’s CPUs that did something, by whoever, and of steal, which other virtual machines took.',
      normal: 'busy while rings work.',
      otherwise: 'steal, or busy without work for p4: something else runs there.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [
        {
          expression: `1 - sum by (host) (rate(p4_host_cpu_seconds_total{${host}, mode=~"idle|iowait"}${rate})) / sum by (host) (rate(p4_host_cpu_seconds_total{${host}}${rate}))`,
          legend: '{{host}}',
        },
        {
          expression: `sum by (host) (rate(p4_host_cpu_seconds_total{${host}, mode="steal"}${rate})) / sum by (host) (rate(p4_host_cpu_seconds_total{${host}}${rate}))`,
          legend: '{{host}} steal',
        },
      ],
    },
    {
      title: 'CPU of agents and stages',
      shows: 'CPUs that agents and stages use, beside those that the agent may use.',
      normal: 'stages use their threads while they compute; an agent a fraction of one.',
      otherwise: 'an agent near one whole CPU is the bottleneck of its rings.',
      ...{ unit: 'none', look: { kind: 'lines' }, width: 8, decimals: 2 },
      queries: [
        {
          expression: `sum by (host) (rate(process_cpu_seconds_total{job="p4", ${host}}${rate}))`,
          legend: '{{host}} agent',
        },
        {
          expression: `sum by (host, ring, stage) (rate(p4_stage_cpu_seconds_total{${host}}${rate}))`,
          legend: '{{host}} {{ring}} stage {{stage}}',
        },
        { expression: `max by (host) (p4_host_cpus{${host}})`, legend: '{{host}} CPUs' },
      ],
    },
    {
      title: 'Waiting for CPU, memory, disk',
      shows: 'Share of time in which something on the host waited, as the kernel counts pressure.',
      normal: 'cpu below 20%, memory and io near 0.',
      otherwise: 'cpu: too many threads. memory: too little for what is loaded. io: a busy disk.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [
        {
          expression: `sum by (host, resource) (rate(p4_host_pressure_seconds_total{${host}}${rate}))`,
          legend: '{{host}} {{resource}}',
        },
      ],
    },
    {
      title: 'Agent CPU for a token',
      shows: 'CPU time of a host’s agent divided by the tokens of the rings it has a part in.',
      normal: 'a few milliseconds, flat.',
      otherwise: 'growing: something on the token’s path grows with time; compare journal sizes.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: [{ expression: `host:p4_agent_cpu_per_token:mean{${host}}`, legend: '{{host}}' }],
    },
    {
      title: 'Event loops of agents',
      shows: 'How late an agent comes to its work (p99), and the share of time in which it is not idle.',
      normal: 'a few milliseconds; busy below 50%.',
      otherwise: 'late and busy: the agent. Late and not busy: the host has too little CPU.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `host:p4_agent_event_loop_delay_seconds:p99{${host}}`, legend: '{{host}} late' },
        {
          expression: `sum by (host) (rate(p4_agent_event_loop_busy_seconds_total{${host}}${rate}))`,
          ...{ legend: '{{host}} busy', rightUnit: 'percentunit' },
        },
      ],
    },
    {
      title: 'Calls that were refused or failed',
      shows: 'Answers of agents that were errors, by code, and what came with another generation.',
      normal: 'none, but for what people mistype.',
      otherwise: 'the code names the cause; `protocol/errors.ts` says what to do about each.',
      ...{ unit: 'suffix: /min', look: { kind: 'lines' }, width: 8 },
      queries: [
        {
          expression: `sum by (host, method, code) (rate(p4_rpc_failures_total{${host}}${rate})) * 60`,
          legend: '{{host}} {{method}} {{code}}',
        },
        {
          expression: `sum by (host, at) (rate(p4_generation_mismatches_total{${host}}${rate})) * 60`,
          legend: '{{host}} other generation, {{at}}',
        },
      ],
    },
  ],
};

const room: PanelRow = {
  title: 'Room',
  panels: [
    {
      title: 'Memory of hosts',
      shows: 'Memory in use on each host, by whoever.',
      normal: 'flat while the same rings are loaded.',
      otherwise: 'near 1: weights are pushed out, and every token waits for the disk.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [
        {
          expression: `max by (host) (1 - p4_host_memory_available_bytes{${host}} / p4_host_memory_bytes{${host}})`,
          legend: '{{host}}',
        },
      ],
    },
    {
      title: 'Memory of agents and stages',
      shows: 'Resident memory of agents and stages, and the agents’ JavaScript heap.',
      normal: 'a stage: its weights, KV cache and buffers. An agent: one or two hundred megabytes.',
      otherwise: 'an agent that grows for hours leaks: keep its log, and restart it.',
      ...{ unit: 'bytes', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `max by (host) (process_resident_memory_bytes{job="p4", ${host}})`, legend: '{{host}} agent' },
        { expression: `max by (host) (p4_agent_heap_used_bytes{${host}})`, legend: '{{host}} agent’s heap' },
        {
          expression: `max by (host, ring, stage) (p4_stage_resident_memory_bytes{${host}})`,
          legend: '{{host}} {{ring}} stage {{stage}}',
        },
      ],
    },
    {
      title: 'Disks',
      shows: 'Free share of the file systems that hold journals and slices.',
      normal: 'above 5%.',
      otherwise: '`npm run slices -- --prune`, or more room.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [{ expression: `host:p4_disk_free:ratio{${host}}`, legend: '{{host}} {{folder}}' }],
    },
    {
      title: 'GPUs',
      shows: 'How busy each GPU is, and the share of its memory in use.',
      normal: 'busy while rings work; none on hosts without.',
      otherwise: 'memory full: another process, or a plan that does not fit.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [
        {
          expression: `max by (host, gpu, name) (p4_gpu_utilization_ratio{${host}} * on (host, gpu) group_left (name) p4_gpu_info)`,
          legend: '{{host}} {{name}} {{gpu}} busy',
        },
        {
          expression: `max by (host, gpu) (p4_gpu_memory_used_bytes{${host}} / p4_gpu_memory_bytes{${host}})`,
          legend: '{{host}} {{gpu}} memory',
        },
      ],
    },
    {
      title: 'Open files of agents',
      shows: 'Share of the file descriptors that an agent may have open.',
      normal: 'a few per cent.',
      otherwise: 'growing: connections that do not end; restart the agent, and keep its log.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [
        {
          expression: `max by (host) (process_open_fds{job="p4", ${host}} / process_max_fds{job="p4", ${host}})`,
          legend: '{{host}}',
        },
      ],
    },
    {
      title: 'Certificates and addresses',
      shows: 'Time until certificates end; and hosts whose advertised address is gone, or whose stages do not answer.',
      normal: 'a deployment renews a certificate within its last 30 days; the others are 0 and seconds.',
      otherwise: 'deploy; with --measure where an address is gone.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: [
        {
          expression: `min by (host, certificate) (p4_certificate_expiry_timestamp_seconds{${host}}) - time()`,
          legend: '{{host}} {{certificate}}',
        },
        {
          expression: `max by (host) (p4_advertised_address_missing{${host}})`,
          ...{ legend: '{{host}} address gone', rightUnit: 'none' },
        },
        {
          expression: `max by (host, ring, stage) (p4_stage_report_age_seconds{${host}})`,
          ...{ legend: '{{host}} {{ring}} stage {{stage}} silent', rightUnit: 's' },
        },
      ],
    },
    {
      title: 'What these figures cost',
      shows: 'Share of a CPU that agents spend on metrics.',
      normal: 'far below 1%.',
      otherwise: 'scrape less often.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `sum by (host) (rate(p4_agent_metrics_seconds_total{${host}}${rate}))`, legend: '{{host}}' },
      ],
    },
  ],
};

export const fleetDashboard: DashboardDefinition = {
  uid: 'p4-fleet',
  title: 'p4 Fleet',
  description: 'All hosts: agents, rings, CPU, memory, disks, GPUs.',
  variable: { name: 'host', label: 'Hosts', series: 'p4_agent_ready', isMany: true },
  alerts: host,
  rows: [state, work, room],
};

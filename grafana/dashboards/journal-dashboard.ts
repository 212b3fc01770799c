/** Journals: how full, how fast, and what a commit costs readers. */
import { range } from '../promql.ts';
import type { DashboardDefinition, PanelRow } from './dashboard.ts';
import type { PanelDefinition } from './panel.ts';

const host = 'host=~"$host"';
const rate = '[$__rate_interval]';
/** Checkpoints and compactions are minutes apart. */
const hour = range(3600);

const size: PanelRow = {
  title: 'Size',
  panels: [
    {
      title: 'Journals',
      shows: 'Whether each journal can be written.',
      normal: 'open, everywhere.',
      otherwise: '`npm run status` has the reason; nothing is admitted until it can.',
      ...{ unit: 'none', look: { kind: 'states' }, width: 8 },
      words: { '0': { text: 'failed', color: 'red' }, '1': { text: 'open', color: 'green' } },
      queries: [{ expression: `max by (host) (p4_journal_up{${host}})`, legend: '{{host}}' }],
    },
    {
      title: 'Size and limit',
      shows: 'Bytes of the journal, with the room that is kept for what was admitted, and what it may have.',
      normal: 'grows for a day, then follows the load: records stay for 24 hours.',
      otherwise: 'grows for days: sessions that stay open keep their tokens.',
      ...{ unit: 'bytes', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `max by (host) (p4_journal_bytes{${host}})`, legend: '{{host}}' },
        { expression: `max by (host) (p4_journal_reserved_bytes{${host}})`, legend: '{{host}} kept free' },
        { expression: `max by (host) (p4_journal_limit_bytes{${host}})`, legend: '{{host}} limit' },
      ],
    },
    {
      title: 'Share of the limit',
      shows: 'How full each journal is.',
      normal: 'below 85%.',
      otherwise: 'close idle sessions; at the limit new requests are refused.',
      ...{ unit: 'percentunit', look: { kind: 'lines' }, width: 8, most: 1 },
      queries: [{ expression: `host:p4_journal_full:ratio{${host}}`, legend: '{{host}}' }],
    },
    {
      title: 'Growth',
      shows: 'Bytes that a journal grows by in a second, over the last hour.',
      normal: 'around 0 once it has a day in it.',
      otherwise: 'positive for days: see Size and limit.',
      ...{ unit: 'Bps', look: { kind: 'lines' }, width: 8 },
      queries: [{ expression: `host:p4_journal_bytes:deriv{${host}}`, legend: '{{host}}' }],
    },
    {
      title: 'Records',
      shows: 'Durable records in the journal.',
      normal: 'follows its size.',
      otherwise: '`p4 journal stats`, on the host, says what fills it.',
      ...{ unit: 'short', look: { kind: 'lines' }, width: 8 },
      queries: [{ expression: `max by (host) (p4_journal_records{${host}})`, legend: '{{host}}' }],
    },
    {
      title: 'WAL',
      shows: 'Bytes that wait for the next checkpoint.',
      normal: 'a saw of a few megabytes.',
      otherwise: 'far more: a long reader keeps checkpoints off.',
      ...{ unit: 'bytes', look: { kind: 'lines' }, width: 8 },
      queries: [{ expression: `max by (host) (p4_journal_wal_bytes{${host}})`, legend: '{{host}}' }],
    },
  ],
};

const upkeep = (
  title: string,
  metric: string,
  words: Pick<PanelDefinition, 'shows' | 'normal' | 'otherwise'>,
): PanelDefinition => ({
  title,
  ...words,
  ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
  queries: [
    {
      expression: `histogram_quantile(0.95, sum by (le, host) (rate(${metric}_bucket{${host}}${hour})))`,
      legend: '{{host}} p95 of an hour',
    },
    {
      expression: `sum by (host) (increase(${metric}_count{${host}}${hour}))`,
      ...{ legend: '{{host}} in an hour', rightUnit: 'short' },
    },
  ],
});

const speed: PanelRow = {
  title: 'Speed',
  panels: [
    {
      title: 'Time of a commit',
      shows: 'From the start of a transaction until it is durable: readers get their tokens that much later.',
      normal: 'a millisecond or a few on an SSD, and flat, however large the journal is.',
      otherwise: 'what else writes to that disk, and its health.',
      ...{ unit: 's', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `host:p4_journal_commit_seconds:p50{${host}}`, legend: '{{host}} p50' },
        { expression: `host:p4_journal_commit_seconds:p99{${host}}`, legend: '{{host}} p99' },
      ],
    },
    {
      title: 'Records per second',
      shows: 'Records that became durable, that had their time and were taken out, and hops that found no room.',
      normal: 'durable follows tokens; over a day as many are taken out.',
      otherwise: 'hops without room: the disk is slower than the ring, which costs nothing but their trail.',
      ...{ unit: 'suffix: /s', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `host:p4_journal_committed_records:rate{${host}}`, legend: '{{host}} durable' },
        {
          expression: `sum by (host) (rate(p4_journal_removed_records_total{${host}}${rate}))`,
          legend: '{{host}} taken out',
        },
        {
          expression: `sum by (host) (rate(p4_journal_dropped_hops_total{${host}}${rate}))`,
          legend: '{{host}} hops without room',
        },
      ],
    },
    {
      title: 'Waiting records, and failures',
      shows: 'Records that are not durable yet, and failures to write in the step of the graph.',
      normal: 'a handful, no failure.',
      otherwise: 'thousands that wait: the disk does not keep up, and readers wait with them.',
      ...{ unit: 'short', look: { kind: 'lines' }, width: 8 },
      queries: [
        { expression: `max by (host) (p4_journal_waiting_records{${host}})`, legend: '{{host}} waiting' },
        {
          expression: `sum by (host) (increase(p4_journal_failures_total{${host}}${rate}))`,
          legend: '{{host}} failures',
        },
      ],
    },
    upkeep('Checkpoints', 'p4_journal_checkpoint_seconds', {
      shows: 'Time of a checkpoint, in which no commit can run, and how many there were.',
      normal: 'tens of milliseconds.',
      otherwise: 'seconds: a slow disk; tokens come in bursts then.',
    }),
    upkeep('Compactions', 'p4_journal_compaction_seconds', {
      shows: 'Time of a look at what has had its time, with commits in between, and how many there were.',
      normal: 'one every ten minutes; longer with a large journal.',
      otherwise: 'longer than the time between two: the journal is too large for its disk.',
    }),
  ],
};

export const journalDashboard: DashboardDefinition = {
  uid: 'p4-journal',
  title: 'p4 Journal',
  description: 'Journals: how full, how fast, and what a commit costs readers.',
  variable: { name: 'host', label: 'Hosts', series: 'p4_journal_up', isMany: true },
  alerts: `${host}, alertname=~"P4(Journal|Commit).*"`,
  rows: [size, speed],
};

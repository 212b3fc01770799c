import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import type { JournalStatus, NodeStatus, RingStatus, StatusReply } from '../protocol/messages.ts';
import { isAllReady, statusLines, type HostAnswer } from './status-table.ts';

const node = (index: number, host: string, change: Partial<NodeStatus> = {}): NodeStatus => ({
  ...{ node: index, host, firstLayer: index, lastLayer: index, state: 'loaded', reason: '', pid: 100 + index },
  ...{ residentBytes: '1000000', cpuSeconds: 1, decodes: '4', prefilledRows: '5', decodedRows: '15', paddingRows: '0' },
  ...{ computeSeconds: 0.04, kvCellsUsed: 20, kvCellsKept: 7, threads: 2, cpus: '0-1', ...change },
});

const ring = (phase: string, nodes: readonly NodeStatus[], change: Partial<RingStatus> = {}): RingStatus => ({
  ...{ ring: 'tale', phase, reason: '', suspendedMs: '0', loadId: '', planDigest: '' },
  ...{ nodes, links: [], head: null, ...change },
});

const head = {
  ...{ sessionsOpen: 1, sessionsLimit: 4, prefixesKept: 2, prefixesLimit: 8, rowsKept: 7 },
  ...{ requestsRunning: 1, requestsFinished: '2', tokensEmitted: '30' },
};

const answer = (host: string, ...rings: readonly RingStatus[]): HostAnswer => says(host, rings);

const says = (host: string, rings: readonly RingStatus[], journalChange: Partial<JournalStatus> = {}): HostAnswer => {
  const agent = {
    host,
    version: '',
    protocol: 1,
    machineId: '',
    cores: 2,
    memoryBytes: '0',
    pid: 7,
    addressMissing: '',
    ...{ memoryAvailableBytes: '0', slicesFreeBytes: '0', cpuGroups: [], cpuQuota: 0 },
    ...{ metricsUrls: [], metricsFault: '' },
  };
  const journal = { state: 'open', records: '3', bytes: '28700', reason: '', ...journalChange };
  const status: StatusReply = { agent, rings, journal, cpuSeconds: 0, residentBytes: '90000000', samples: null };
  return { host, address: '127.0.0.1:7400', answer: { kind: 'status', status } };
};

const silent: HostAnswer = {
  host: 'bee',
  address: '127.0.0.1:7402',
  answer: { kind: 'error', error: new P4Error('AGENT_UNREACHABLE', { host: 'bee' }) },
};

const both = [
  answer('ant', ring('ready', [node(0, 'ant')], { head })),
  answer('bee', ring('linked', [node(1, 'bee')])),
];

describe('a status', () => {
  test('calls a ring with a stage that does not answer degraded, and says which (R1)', () => {
    const reason = 'it has not answered for 4 s';
    const halted = [
      answer('ant', ring('ready', [node(0, 'ant')], { head })),
      answer('bee', ring('silent', [node(1, 'bee', { state: 'silent', reason })])),
    ];
    const lines = statusLines(halted, null);
    assert.ok(lines.includes('Ring tale: degraded: ready on ant, silent on bee'));
    assert.ok(lines.includes(`  node 1 silent: ${reason}`));
    assert.equal(isAllReady(halted), false);
  });

  test('shows a ring once, with the stages of all its hosts in order', () => {
    const lines = statusLines(both.toReversed(), null);
    assert.equal(lines.filter((line) => line.startsWith('Ring tale')).length, 1);
    const rows = lines.filter((line) => /^ +\d /.test(line)).map((line) => line.trim().split(/ {2,}/));
    assert.deepEqual(rows, [
      ['1 of 4 sessions open, 2 of 8 kept, 1 requests running, 2 finished, 30 tokens emitted'],
      ['0', 'ant', '0-0', 'loaded', '100', '2', '0-1', '1.0 MB', '5', '15', '2.00', '20', '7'],
      ['1', 'bee', '1-1', 'loaded', '101', '2', '0-1', '1.0 MB', '5', '15', '2.00', '20', '7'],
    ]);
  });

  test('calls a ring ready on all its hosts, and only then', () => {
    assert.ok(statusLines(both, null).includes('Ring tale: ready on ant, bee'));
    assert.ok(statusLines(both.slice(1), null).includes('Ring tale: linked on bee'), 'its head is not seen');
    const half = [both[0] ?? silent, answer('bee', ring('loaded', [node(1, 'bee')]))];
    assert.ok(statusLines(half, null).includes('Ring tale: ready on ant, loaded on bee'));
  });

  test('says that no ring is loaded only where every agent said so', () => {
    assert.equal(statusLines([answer('ant')], null).at(-1), 'No ring is loaded.');
    assert.ok(statusLines([answer('ant'), silent], null).includes('No ring is loaded on the hosts that answer.'));
    assert.equal(statusLines([], null).at(-1), 'The fleet has no hosts.');
  });

  test('says where metrics are shown, and why they are not; nothing is less ready for it', () => {
    const withMetrics = (metricsUrls: readonly string[], metricsFault: string): HostAnswer => {
      const seen = answer('ant');
      assert.ok(seen.answer.kind === 'status' && seen.answer.status.agent !== null);
      const { status } = seen.answer;
      const agent = { ...seen.answer.status.agent, metricsUrls, metricsFault };
      return { ...seen, answer: { kind: 'status', status: { ...status, agent } } };
    };
    const plain = 'http://127.0.0.1:7401/metrics';
    assert.match(statusLines([withMetrics([plain], '')], null).join('\n'), / :7401 local /);
    assert.match(
      statusLines([withMetrics([plain, 'https://[fd00::1]:7401/metrics'], '')], null).join('\n'),
      / :7401 tls /,
    );
    const taken = withMetrics([], 'ADDRESS_IN_USE, address 127.0.0.1:7401');
    const text = statusLines([taken], null).join('\n');
    assert.match(text, /ant: its metrics cannot be shown: ADDRESS_IN_USE, address 127\.0\.0\.1:7401/);
    assert.match(text, / none /);
    assert.equal(isAllReady([taken]), true);
  });

  test('shows an agent that does not answer, and why', () => {
    const text = statusLines([both[0] ?? silent, silent], null).join('\n');
    assert.match(text, /bee +127\.0\.0\.1:7402 +AGENT_UNREACHABLE/);
    assert.match(text, /bee: AGENT_UNREACHABLE: /);
  });

  test('tells why something is lost below the table, not in it', () => {
    const lost = ring('suspended', [node(0, 'ant', { state: 'lost', reason: 'STAGE_LOST, exit SIGKILL', pid: 0 })], {
      head,
    });
    const lines = statusLines([answer('ant', lost)], null);
    assert.ok(lines.includes('  node 0 lost: STAGE_LOST, exit SIGKILL'));
    assert.ok(lines.every((line) => line.length < 120));
  });

  test('is ready when all answer, every ring is whole, and its head says so', () => {
    assert.ok(isAllReady(both));
    assert.ok(isAllReady([answer('ant')]), 'no ring is no trouble');
    assert.ok(!isAllReady([...both, silent]));
    assert.ok(!isAllReady([answer('bee', ring('linked', [node(1, 'bee')]))]), 'a ring without its head');
    for (const phase of ['claimed', 'loading', 'loaded', 'linking', 'linked', 'probing', 'suspended', 'ending']) {
      assert.ok(!isAllReady([answer('ant', ring(phase, [node(0, 'ant')], { head }))]), phase);
    }
  });

  test('calls a ring degraded that lost a part, with the reason and for how long', () => {
    const reason = 'STAGE_LOST: stage 1 on host bee has ended, SIGKILL';
    const suspended = ring('suspended', [node(0, 'ant')], { head, reason, suspendedMs: '12400' });
    const lines = statusLines([answer('ant', suspended), answer('bee', ring('suspended', [node(1, 'bee')]))], null);
    assert.ok(lines.includes('Ring tale: degraded for 12 s: suspended on ant, suspended on bee'), lines.join('\n'));
    assert.ok(lines.includes(`  suspended on ant: ${reason}`));
    const claimed = [both[0] ?? silent, answer('bee', ring('claimed', []))];
    assert.ok(statusLines(claimed, null).includes('Ring tale: degraded: ready on ant, claimed on bee'));
    assert.ok(!isAllReady(claimed), 'what the head does not know yet');
  });

  test('calls a ring degraded whose host does not answer or holds nothing of it, where that is known here', () => {
    const known = { replays: new Map(), hosts: new Map([['tale', ['ant', 'bee']]]) };
    const absent = statusLines([both[0] ?? silent, silent], null, known);
    assert.ok(absent.includes('Ring tale: degraded: ready on ant, no answer from bee'), absent.join('\n'));
    const bare = [both[0] ?? silent, answer('bee')];
    assert.ok(statusLines(bare, null, known).includes('Ring tale: degraded: ready on ant, nothing on bee'));
    assert.ok(!isAllReady(bare, known));
    const loading = [answer('ant', ring('loading', [node(0, 'ant')])), answer('bee')];
    assert.ok(statusLines(loading, null, known).includes('Ring tale: loading on ant, nothing on bee'));
  });

  test('shows a journal that cannot be written, and why, and is not ready then', () => {
    const full = says('ant', [], { state: 'failed', reason: 'JOURNAL_WRITE_FAILED: no space left' });
    const lines = statusLines([full], null);
    const said = lines.at(-1) ?? '';
    assert.match(said, /^ant: its journal is failed: JOURNAL_WRITE_FAILED: no space left; nothing new is admitted/);
    assert.ok(!isAllReady([full]));
  });
});

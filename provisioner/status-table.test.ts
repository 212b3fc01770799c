import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import type { NodeStatus, RingStatus, StatusReply } from '../protocol/messages.ts';
import { isAllReady, statusLines, type HostAnswer } from './status-table.ts';

const node = (index: number, host: string, change: Partial<NodeStatus> = {}): NodeStatus => ({
  ...{ node: index, host, firstLayer: index, lastLayer: index, state: 'loaded', reason: '', pid: 100 + index },
  ...{ residentBytes: '1000000', cpuSeconds: 1, decodes: '4', prefilledRows: '5', decodedRows: '15', paddingRows: '0' },
  ...{ computeSeconds: 0.04, kvCellsUsed: 20, ...change },
});

const ring = (phase: string, nodes: readonly NodeStatus[], change: Partial<RingStatus> = {}): RingStatus => ({
  ...{ ring: 'tale', phase, reason: '', loadId: '', planDigest: '', nodes, links: [], head: null, ...change },
});

const head = { sessionsOpen: 1, sessionsLimit: 4, requestsRunning: 1, requestsFinished: '2', tokensEmitted: '30' };

const answer = (host: string, ...rings: readonly RingStatus[]): HostAnswer => {
  const agent = {
    host,
    version: '',
    protocol: 1,
    machineId: '',
    cores: 2,
    memoryBytes: '0',
    pid: 7,
    addressMissing: '',
    ...{ memoryAvailableBytes: '0', slicesFreeBytes: '0' },
  };
  const journal = { state: 'open', records: '3', bytes: '28700' };
  const status: StatusReply = { agent, rings, journal, cpuSeconds: 0, residentBytes: '90000000' };
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
  test('shows a ring once, with the stages of all its hosts in order', () => {
    const lines = statusLines(both.toReversed(), null);
    assert.equal(lines.filter((line) => line.startsWith('Ring tale')).length, 1);
    const rows = lines.filter((line) => /^ +\d /.test(line)).map((line) => line.trim().split(/ {2,}/));
    assert.deepEqual(rows, [
      ['1 of 4 sessions open, 1 requests running, 2 finished, 30 tokens emitted'],
      ['0', 'ant', '0-0', 'loaded', '100', '1.0 MB', '5', '15', '2.00', '20'],
      ['1', 'bee', '1-1', 'loaded', '101', '1.0 MB', '5', '15', '2.00', '20'],
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

  test('shows an agent that does not answer, and why', () => {
    const text = statusLines([both[0] ?? silent, silent], null).join('\n');
    assert.match(text, /bee +127\.0\.0\.1:7402 +AGENT_UNREACHABLE/);
    assert.match(text, /bee: AGENT_UNREACHABLE: /);
  });

  test('tells why something is lost below the table, not in it', () => {
    const lost = ring('lost', [node(0, 'ant', { state: 'lost', reason: 'STAGE_LOST, exit SIGKILL', pid: 0 })], {
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
    for (const phase of ['claimed', 'loading', 'loaded', 'linked', 'lost', 'ending']) {
      assert.ok(!isAllReady([answer('ant', ring(phase, [node(0, 'ant')], { head }))]), phase);
    }
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hostName } from '../../protocol/ids.ts';
import type { AgentDescription, NodeStatus } from '../../protocol/messages.ts';
import { machinesOf, type AgentAnswer } from './machine.ts';

const description: AgentDescription = {
  ...{ host: '', version: '', protocol: 1, machineId: '', cores: 2, memoryBytes: '0', pid: 1, addressMissing: '' },
  ...{ memoryAvailableBytes: '0', slicesFreeBytes: '0', cpuGroups: [], cpuQuota: 0, metricsUrls: [], metricsFault: '' },
};

const node = (index: number, change: Partial<NodeStatus> = {}): NodeStatus => ({
  ...{ node: index, host: '', firstLayer: 0, lastLayer: 0, state: 'loaded', reason: '', pid: 1 },
  ...{ residentBytes: '0', cpuSeconds: 0, decodes: '0', prefilledRows: '0', decodedRows: '0', paddingRows: '0' },
  ...{ computeSeconds: 0, kvCellsUsed: 0, kvCellsKept: 0, threads: 1, cpus: '', ...change },
});

const answer = (host: string, change: Partial<AgentDescription>, ...nodes: readonly NodeStatus[]): AgentAnswer => ({
  host: hostName(host),
  description: { ...description, ...change },
  rings: [
    {
      ...{ ring: `ring-${host}`, phase: 'ready', reason: '', suspendedMs: '0', loadId: '', planDigest: '' },
      ...{ nodes, links: [], head: null },
    },
  ],
});

test('agents of one machine are one machine, with the stages of all', () => {
  const machines = machinesOf([
    answer('ant', { machineId: 'm' }, node(0, { threads: 2, cpus: '0-1' })),
    answer('cow', { machineId: 'other' }),
    answer('bee', { machineId: 'm' }, node(3)),
  ]);
  assert.deepEqual(
    machines.map(({ hosts }) => hosts),
    [['ant', 'bee'], ['cow']],
  );
  assert.deepEqual(machines[0]?.stages, [
    { host: 'ant', ring: 'ring-ant', node: 0, threads: 2, cpus: [{ first: 0, last: 1 }] },
    { host: 'bee', ring: 'ring-bee', node: 3, threads: 1, cpus: null },
  ]);
});

test('hosts that do not say which machine they are share nothing', () => {
  assert.equal(machinesOf([answer('ant', {}), answer('bee', {})]).length, 2);
});

test('a stage that has ended takes nothing; one that was lost comes back', () => {
  const states = ['loading', 'attaching', 'loaded', 'lost', 'stopping', 'stopped'];
  const [machine] = machinesOf([answer('ant', {}, ...states.map((state, index) => node(index, { state })))]);
  assert.deepEqual(
    machine?.stages.map((stage) => stage.node),
    [0, 1, 2, 3],
  );
});

test('an agent that says less than it might is counted with what it says', () => {
  const [machine] = machinesOf([answer('ant', { cores: 6 }, node(0, { threads: 0, cpus: 'x' }))]);
  assert.deepEqual([machine?.groups, machine?.cpuCount, machine?.quota], [null, 6, null]);
  assert.deepEqual([machine?.stages[0]?.threads, machine?.stages[0]?.cpus], [1, null]);
  const wrong = { numaNode: 0, capacity: 1, cores: ['0-1', '1-2'] };
  assert.equal(machinesOf([answer('ant', { cpuGroups: [wrong] })])[0]?.groups, null);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { CpuGroup } from '../../protocol/cpu-topology.ts';
import { hostName } from '../../protocol/ids.ts';
import { cpusText, type CpuRange } from '../../protocol/inventory.ts';
import { parsePlan } from '../../protocol/plan-document.ts';
import { planDigest } from '../../protocol/plan-digest.ts';
import type { Plan } from '../../protocol/plan.ts';
import { allotCpus, settledPlan } from './allotment.ts';
import { stageCpusJson, stageCpusText } from './allotment-text.ts';
import type { HeldStage, Machine } from './machine.ts';

/** A plan of stages with these words, two layers each. */
function planOf(...stages: readonly string[]): Plan {
  const lines = stages.map((words, index) => `  - { layers: ${2 * index}-${2 * index + 1}, ${words} }\n`);
  const reading = parsePlan(`ring: tales\nmodel: m\ncontext: 8\nsessions: 1\nstages:\n${lines.join('')}`, 'p.yaml');
  assert(reading.kind === 'plan');
  return reading.plan;
}

interface GroupChange extends Partial<CpuGroup> {
  readonly threads?: number;
  readonly from?: number;
}

/** One group of cores, with so many threads each: CPU c is the thread c / cores of core c % cores. */
function groupOf(cores: number, change: GroupChange = {}): CpuGroup {
  const { threads = 1, from = 0, numaNode = 0, capacity = 1024 } = change;
  const cpusOf = (core: number): readonly number[] => upTo(threads).map((thread) => from + core + thread * cores);
  return { numaNode, capacity, cores: upTo(cores).map(cpusOf) };
}

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_none, index) => index);

function machine(groups: readonly CpuGroup[] | null, change: Partial<Machine> = {}): Machine {
  const cpuCount = groups === null ? 4 : groups.flatMap(({ cores }) => cores.flat()).length;
  return { hosts: [hostName('ant')], groups, cpuCount, quota: null, stages: [], ...change };
}

/** @param at a node's ring and index, as `songs.0` */
function held(at: string, threads: number, cpus: readonly CpuRange[] | null = null): HeldStage {
  const [ring = '', node] = at.split('.');
  return { host: hostName('ant'), ring, node: Number(node), threads, cpus };
}

const range = (first: number, last: number): readonly CpuRange[] => [{ first, last }];

/** `4 on 0-3` for each stage. */
const shares = (plan: Plan, ...machines: readonly Machine[]): readonly string[] => {
  const { stages, shortfalls } = allotCpus(plan, machines);
  assert.deepEqual(shortfalls, []);
  return stages.map(({ threads, cpus }) => (cpus === null ? String(threads) : `${threads} on ${cpusText(cpus)}`));
};
const refusals = (plan: Plan, ...machines: readonly Machine[]): readonly string[] =>
  allotCpus(plan, machines).shortfalls;

const one = planOf('host: ant');
const two = planOf('host: ant', 'host: ant');

describe('what a plan leaves open is shared out', () => {
  test('the cores less one, as evenly as can be, side by side', () => {
    assert.deepEqual(shares(two, machine([groupOf(8)])), ['4 on 0-3', '3 on 4-6']);
    assert.deepEqual(shares(one, machine([groupOf(8)])), ['7 on 0-6']);
    assert.deepEqual(shares(one, machine([groupOf(3)])), ['2 on 0-1']);
  });

  test('what is left over goes to the stage with the most layers', () => {
    const uneven = {
      ...two,
      stages: two.stages.map((stage) => ({ ...stage, layers: { first: 0, last: stage.index } })),
    };
    assert.deepEqual(shares(uneven, machine([groupOf(8)])), ['3 on 4-6', '4 on 0-3']);
  });

  test('a core counts once, and is given with all its threads', () => {
    assert.deepEqual(shares(two, machine([groupOf(4, { threads: 2 })])), ['2 on 0-1,4-5', '1 on 2,6']);
  });

  test('on two cores every stage has one thread, which may run on either', () => {
    assert.deepEqual(shares(one, machine([groupOf(2)])), ['1 on 0']);
    assert.deepEqual(shares(two, machine([groupOf(2)])), ['1', '1']);
    assert.deepEqual(shares(planOf(...Array<string>(5).fill('host: ant')), machine([groupOf(2)])), Array(5).fill('1'));
  });

  test('stages lie in one cache and on one NUMA node each', () => {
    const server = machine([groupOf(8), groupOf(8, { from: 8, numaNode: 1 })]);
    assert.deepEqual(shares(two, server), ['8 on 0-7', '7 on 8-14']);
    const caches = machine([0, 4, 8, 12].map((from) => groupOf(4, { from })));
    assert.deepEqual(shares(planOf(...Array<string>(4).fill('host: ant')), caches), [
      ...['4 on 0-3', '4 on 4-7', '4 on 8-11', '3 on 12-14'],
    ]);
  });

  test('slow cores are left to the agent and the system', () => {
    const phone = machine([groupOf(4, { capacity: 446 }), groupOf(4, { from: 4 })]);
    assert.deepEqual(shares(one, phone), ['4 on 4-7']);
    assert.deepEqual(shares(two, phone), ['2 on 4-5', '2 on 6-7']);
    const near = machine([groupOf(4, { capacity: 900 }), groupOf(4, { from: 4 })]);
    assert.deepEqual(shares(one, near), ['7 on 0-6'], 'a small difference is none');
  });

  test('a control group that gives little time is given few threads', () => {
    assert.deepEqual(shares(one, machine([groupOf(64)], { quota: 4 })), ['3 on 0-2']);
    assert.deepEqual(shares(one, machine([groupOf(64)], { quota: 0.5 })), ['1 on 0']);
  });

  test('where only the number of CPUs is known, threads are chosen and CPUs are not', () => {
    assert.deepEqual(shares(one, machine(null)), ['3']);
  });

  test('a stage on a GPU computes nothing here', () => {
    const plan = planOf('host: ant, device: { gpu: 0 }', 'host: ant');
    assert.deepEqual(shares(plan, machine([groupOf(8)])), ['1', '6 on 0-5']);
    const half = planOf('host: ant, device: { gpu: 0, layers: 1 }');
    assert.deepEqual(shares(half, machine([groupOf(8)])), ['7 on 0-6'], 'one that is there in part does');
  });
});

describe('what the plan says holds', () => {
  test('threads; their CPUs are chosen where there are enough', () => {
    assert.deepEqual(shares(planOf('host: ant, threads: 2', 'host: ant'), machine([groupOf(8)])), [
      '2 on 5-6',
      '5 on 0-4',
    ]);
    assert.deepEqual(shares(planOf('host: ant, threads: 8'), machine([groupOf(8)])), ['8']);
    assert.deepEqual(shares(planOf('host: ant, threads: 8'), machine([groupOf(4, { threads: 2 })])), ['8']);
  });

  test('CPUs, which others then keep off', () => {
    const plan = planOf('host: ant, threads: 2, cpus: 2-3', 'host: ant');
    assert.deepEqual(shares(plan, machine([groupOf(8)])), ['2 on 2-3', '5 on 0-1,4-6']);
  });

  test('the threads of a stage that has its CPUs written are as many as their cores', () => {
    assert.deepEqual(shares(planOf('host: ant, cpus: "0-1,4-5"'), machine([groupOf(4, { threads: 2 })])), [
      '2 on 0-1,4-5',
    ]);
    const same = planOf('host: ant, cpus: 0-3', 'host: ant, cpus: 0-3');
    assert.deepEqual(shares(same, machine([groupOf(8)])), ['2 on 0-3', '2 on 0-3']);
    const mixed = planOf('host: ant, cpus: 0-3', 'host: ant, cpus: 0-3, threads: 3');
    assert.deepEqual(shares(mixed, machine([groupOf(8)])), ['1 on 0-3', '3 on 0-3']);
  });

  test('where cores are short, stages with one thread keep off those with several', () => {
    const plan = planOf('host: ant, threads: 3', 'host: ant', 'host: ant');
    assert.deepEqual(shares(plan, machine([groupOf(4)])), ['3 on 0-2', '1 on 3', '1 on 3']);
  });
});

describe('what stands there already', () => {
  test('has its cores, whatever ring it is of', () => {
    const kept = machine([groupOf(8)], { stages: [held('songs.0', 4, range(0, 3))] });
    assert.deepEqual(shares(one, kept), ['3 on 4-6']);
    const roaming = machine([groupOf(8)], { stages: [held('songs.0', 4)] });
    assert.deepEqual(shares(one, roaming), ['3 on 0-2']);
  });

  test('is kept off where it has nearly all', () => {
    const full = machine([groupOf(4)], { stages: [held('songs.0', 3, range(0, 2))] });
    assert.deepEqual(shares(two, full), ['1 on 3', '1 on 3']);
  });

  test('keeps what it has when its own ring is loaded again', () => {
    const standing = machine([groupOf(8)], { stages: [held('tales.0', 2, range(4, 5)), held('tales.1', 1)] });
    assert.deepEqual(shares(two, standing), ['2 on 4-5', '1']);
    assert.deepEqual(shares(planOf('host: ant, threads: 9', 'host: ant'), standing), ['2 on 4-5', '1']);
    const half = machine([groupOf(8)], { stages: [held('tales.0', 4, range(0, 3))] });
    assert.deepEqual(shares(two, half), ['4 on 0-3', '3 on 4-6'], 'one that was lost is started beside it');
  });

  test('counts for all agents of the machine', () => {
    const hosts = [hostName('ant'), hostName('bee')];
    const songs = { ...held('songs.0', 2, range(0, 1)), host: hostName('bee') };
    assert.deepEqual(shares(two, machine([groupOf(8)], { hosts, stages: [songs] })), ['3 on 2-4', '2 on 5-6']);
  });
});

describe('what would oversubscribe is refused with its sum', () => {
  test('in the plan itself', () => {
    assert.deepEqual(refusals(planOf('host: ant, threads: 2', 'host: ant, threads: 2'), machine([groupOf(2)])), [
      'ant: 4 threads (stage 0 of tales 2 + stage 1 of tales 2) for 2 CPUs',
    ]);
    assert.deepEqual(refusals(planOf('host: ant, threads: 2'), machine([groupOf(1)])), [
      'ant: 2 threads (stage 0 of tales 2) for 1 CPU',
    ]);
  });

  test('with what stands there', () => {
    const songs = machine([groupOf(4)], { stages: [held('songs.1', 2)] });
    assert.deepEqual(refusals(planOf('host: ant, threads: 3'), songs), [
      'ant: 5 threads (stage 0 of tales 3 + stage 1 of songs 2) for 4 CPUs',
    ]);
    const all = machine([groupOf(2)], { stages: [held('songs.0', 2)] });
    assert.deepEqual(refusals(one, all), ['ant: 3 threads (stage 0 of tales 1 + stage 0 of songs 2) for 2 CPUs']);
  });

  test('on the CPUs that are written for a stage', () => {
    assert.deepEqual(refusals(planOf('host: ant, threads: 4, cpus: 0-1'), machine([groupOf(8)])), [
      'ant: 4 threads (stage 0 of tales 4) for 2 CPUs (0-1)',
    ]);
    assert.deepEqual(refusals(planOf('host: ant, cpus: 8-9'), machine([groupOf(8)])), [
      'ant: stage 0 of tales is to keep to CPUs 8-9, and p4 has 0-7 there',
    ]);
  });

  test('where the time of a control group is short', () => {
    assert.deepEqual(refusals(planOf('host: ant, threads: 3'), machine([groupOf(8)], { quota: 2.5 })), [
      'ant: 3 threads (stage 0 of tales 3) for the time of 2.5 CPUs that its control group has',
    ]);
  });

  test('on all machines at once', () => {
    const plan = planOf('host: ant, threads: 3', 'host: bee, threads: 5');
    const bee = machine([groupOf(4)], { hosts: [hostName('bee')] });
    assert.deepEqual(refusals(plan, machine([groupOf(2)]), bee), [
      'ant: 3 threads (stage 0 of tales 3) for 2 CPUs',
      'bee: 5 threads (stage 1 of tales 5) for 4 CPUs',
    ]);
  });

  test('but not where nothing is to be started, or every stage has one thread', () => {
    const busy = machine([groupOf(2)], { stages: [held('tales.0', 2), held('songs.0', 2)] });
    assert.deepEqual(refusals(one, busy), []);
    const singles = machine([groupOf(1)], { stages: [held('songs.0', 1), held('songs.1', 1)] });
    assert.deepEqual(refusals(two, singles), []);
  });
});

test('agents are told every choice, and it makes no other plan', () => {
  const plan = planOf('host: ant, memory: { limitMiB: 512 }', 'host: ant');
  const settled = settledPlan(plan, allotCpus(plan, [machine([groupOf(8)])]).stages);
  assert.deepEqual(
    settled.stages.map(({ threads, confinement }) => ({ threads, confinement })),
    [
      { threads: 4, confinement: { cpus: range(0, 3), memoryLimitBytes: 512 * 2 ** 20 } },
      { threads: 3, confinement: { cpus: range(4, 6), memoryLimitBytes: null } },
    ],
  );
  assert.equal(planDigest(settled), planDigest(plan));
  const small = settledPlan(plan, allotCpus(plan, [machine([groupOf(2)])]).stages);
  assert.deepEqual(small.stages[0]?.confinement, { cpus: null, memoryLimitBytes: 512 * 2 ** 20 });
  assert.equal(small.stages[1]?.confinement, undefined);
});

test('a choice is told with its reasons', () => {
  const text = (plan: Plan, where: Machine): readonly string[] => allotCpus(plan, [where]).stages.map(stageCpusText);
  assert.deepEqual(text(two, machine([groupOf(8)])), [
    '4 threads on CPUs 0-3 (chosen: 8 cores, 1 for the agent, 2 stages)',
    '3 threads on CPUs 4-6 (chosen: 8 cores, 1 for the agent, 2 stages)',
  ]);
  assert.deepEqual(text(two, machine([groupOf(2)])), Array(2).fill('1 thread (chosen: 2 cores, 2 stages)'));
  const songs = machine([groupOf(8)], { stages: [held('songs.0', 4, range(0, 3))] });
  const written = planOf('host: ant, threads: 2, cpus: 6-7', 'host: ant, threads: 1', 'host: ant, device: { gpu: 0 }');
  assert.deepEqual(text(written, songs), [
    '2 threads on CPUs 6-7 (as the plan says)',
    '1 thread on CPUs 4-5 (CPUs chosen: 8 cores, 4 taken, 3 stages)',
    '1 thread (its layers are on a GPU)',
  ]);
  assert.deepEqual(text(planOf('host: ant, threads: 1'), songs), [
    '1 thread on CPU 4 (CPUs chosen: 8 cores, 4 taken, 1 for the agent, 1 stage)',
  ]);
  const standing = machine([groupOf(8)], { stages: [held('tales.0', 2)] });
  assert.deepEqual(text(one, standing), ['2 threads (as it stands)']);
  const [json] = allotCpus(one, [machine([groupOf(4)])]).stages.map(stageCpusJson);
  assert.deepEqual(json, {
    ...{ threads: 3, cpus: '0-2', from: 'decided', chosen: 'both', cores: 4, taken: 0, forAgent: 1, stages: 1 },
  });
});

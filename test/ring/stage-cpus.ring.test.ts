/**
 * Threads and CPUs of real stages: they keep to what they were told, a plan that would oversubscribe the machine is refused
 * and leaves nothing, and a stage that waits costs nothing.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { present } from '../../protocol/assert.ts';
import { hostName } from '../../protocol/ids.ts';
import type { NodeStatus } from '../../protocol/messages.ts';
import { cpuMs } from '../bench/process-usage.ts';
import { LocalAgents, type RingPlan } from '../fixture/local-agents.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';

let agents: LocalAgents;
/** CPUs of this machine that p4 may use, rising. */
let cpus: readonly number[];
const loaded: LoadedRing[] = [];

before(async () => {
  agents = await LocalAgents.start(2);
  const { cpuGroups, cores } = await agents.fleet.describe(hostName('local'), new AbortController().signal);
  cpus = cpuGroups.flatMap((group) => group.cores.flatMap(numbersIn)).toSorted((one, other) => one - other);
  assert.equal(cpus.length, cores);
});
after(async () => {
  await agents.stop();
});
afterEach(async () => {
  for (const { plan } of loaded.splice(0)) {
    const { exit, err } = await agents.home.run(['unload', plan.path]);
    assert.equal(exit, 0, err);
  }
});

async function load(plan: RingPlan): Promise<LoadedRing> {
  const ring = await agents.load(plan);
  loaded.push(ring);
  return ring;
}

test('two stages of one machine keep to the CPUs that the plan gives each, whichever agent has them', async () => {
  const [first, last] = [present(cpus[0], 'a machine has a CPU'), present(cpus.at(-1), 'a machine has a CPU')];
  const stages = [
    ['local', '0-3', { threads: 1, cpus: first }],
    ['local-2', '4-7', { threads: 1, cpus: last }],
  ] as const;
  const ring = await load({ ring: 'kept', stages });
  for (const [host, cpu] of [['local', first] as const, ['local-2', last] as const]) {
    const [node] = await nodesOn(host, ring.name);
    assert(node !== undefined);
    assert.equal(allowedOf(node), String(cpu));
    assert.deepEqual([node.threads, node.cpus], [1, String(cpu)]);
  }
});

test('what a plan leaves open is chosen, told, and what the stages have', async () => {
  const path = agents.writePlan({
    ring: 'open',
    stages: [
      ['local', '0-3', {}],
      ['local', '4-7', {}],
    ],
  });
  const { exit, out, err } = await agents.home.run(['load', path, '--json']);
  assert.equal(exit, 0, err);
  const told = readyStages(out);
  const nodes = await nodesOn('local', 'open');
  const own = allowedOf({ pid: agents.agent('local').pid });
  assert.equal(nodes.length, 2);
  for (const [index, node] of nodes.entries()) {
    const stage = present(told[index], 'every stage is told');
    assert.deepEqual([node.threads, node.cpus], [stage.threads, stage.cpus]);
    assert.equal(allowedOf(node), stage.cpus === '' ? own : stage.cpus);
  }
  const again = await agents.home.run(['load', path]);
  assert.match(again.out, /stage 0 on local: layers 0-3, .*, \d+ threads?( on CPUs? [0-9,-]+)? \(as it stands\)/);
  const status = await agents.home.run(['status', path]);
  assert.match(status.out, /NODE +HOST +LAYERS +STATE +PID +THREADS +CPUS/);
  assert.equal((await agents.home.run(['unload', path])).exit, 0);
});

test('a plan with more threads than the machine has CPUs is refused with the sum, and leaves nothing', async () => {
  const threads = Math.max(2, cpus.length);
  const stages = [
    ['local', '0-3', { threads }],
    ['local', '4-7', { threads }],
  ] as const;
  const { err } = await refused({ ring: 'wide', stages });
  const sum = `${2 * threads} threads (stage 0 of wide ${threads} + stage 1 of wide ${threads}) for ${cpus.length} CPU`;
  assert.ok(err.includes(sum), err);
});

test('stages of other rings count, those of another agent of the machine too, and stay as they are', async () => {
  const ring = await load({ ring: 'first', stages: [['local-2', '0-7']] });
  const [before] = await nodesOn('local-2', ring.name);
  const threads = Math.max(2, cpus.length);
  const { err } = await refused({ ring: 'second', stages: [['local', '0-7', { threads }]] });
  assert.ok(err.includes('stage 0 of first 1'), err);
  const [afterwards] = await nodesOn('local-2', ring.name);
  assert.equal(afterwards?.pid, before?.pid);
  const { text } = await ring.askAlone({ prompt: 'Once upon a time', maxTokens: 4 });
  assert.notEqual(text, '');
});

test('a stage that waits takes less than a hundredth of a CPU, also one whose threads have computed together', async () => {
  const threads = Math.min(2, cpus.length);
  const ring = await load({ ring: 'idle', stages: [['local', '0-7', { threads }]] });
  await ring.askAlone({ prompt: 'Once upon a time', maxTokens: 4 });
  const { pid } = present((await nodesOn('local', ring.name))[0], 'the stage is there');
  const secondMs = 1000;
  // What follows a request: garbage is collected, code is compiled.
  await pause(secondMs);
  const [usedBefore, startedMs] = [cpuMs(pid), performance.now()];
  await pause(5 * secondMs);
  const share = (cpuMs(pid) - usedBefore) / (performance.now() - startedMs);
  assert.ok(share < 0.01, `${(share * 100).toFixed(2)} % of a CPU`);
});

/** Refused for its threads, with nothing left of it. */
async function refused(plan: RingPlan): Promise<{ readonly err: string }> {
  const processes = agents.home.processes().toSorted();
  const { exit, out, err } = await agents.home.run(['load', agents.writePlan(plan)]);
  assert.equal(exit, 3, out + err);
  assert.match(err, /^PLAN_OVERSUBSCRIBES/m);
  assert.ok(!existsSync(join(agents.state.root, 'generations', `${plan.ring}.json`)), 'no generation is kept');
  assert.deepEqual(agents.home.processes().toSorted(), processes, 'no stage was started');
  for (const host of agents.hosts) assert.deepEqual((await agents.status(host, plan.ring)).rings, []);
  return { err };
}

interface ToldStage {
  readonly threads: number;
  readonly cpus: string;
}

function readyStages(out: string): readonly ToldStage[] {
  const line = present(
    out.split('\n').find((one) => one.includes('"ready"')),
    'the load says what is ready',
  );
  const { stages } = JSON.parse(line) as { readonly stages: readonly ToldStage[] };
  return stages;
}

/** The ring's stages on one host, in order. */
async function nodesOn(host: string, ring: string): Promise<readonly NodeStatus[]> {
  const { rings } = await agents.status(host, ring);
  return rings.flatMap(({ nodes }) => nodes).toSorted((one, other) => one.node - other.node);
}

function allowedOf({ pid }: { readonly pid: number }): string {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return present(/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1], 'a process may run somewhere');
}

/** `0-1,4` */
const numbersIn = (text: string): readonly number[] =>
  text.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_none, index) => first + index);
  });

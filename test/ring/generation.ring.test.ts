/** The generation: a number that the loader keeps and no agent writes down, without which nothing changes (G2 to G6). */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import type { Generation } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { planFileOf } from '../../protocol/plan-document.ts';
import { RingCalls } from '../../provisioner/ring-calls.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents, type RingPlan } from '../fixture/local-agents.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';

const plan: RingPlan = {
  ring: 'counted',
  stages: [
    ['local', '0-3'],
    ['local-2', '4-7'],
  ],
};

let agents: LocalAgents;
let ring: LoadedRing;

before(async () => {
  agents = await LocalAgents.start(2);
  ring = await agents.load(plan);
});
after(() => agents.stop());

/** The same ring, addressed with another number. */
const otherAddress = (): { ring: string; generation: string } => {
  return { ring: ring.name, generation: String(ring.generation + 1n) };
};

describe('another generation', () => {
  const options = { deadlineMs: limits.answerMs };
  const mismatch = { code: 'GENERATION_MISMATCH' };

  test('is refused by every call of a client, and the session that stands goes on', async () => {
    const held = await ring.open();
    const { session } = held;
    const request = await ring.submit(session, { prompt: [0, 300], maxTokens: 6, ignoreEnd: true });
    const at = { ...otherAddress(), session, request };
    const calls = new RingCalls(ring.head, ring.plan.plan.ring, (ring.generation + 1n) as Generation);
    await assert.rejects(calls.openSession(ring.signal), mismatch);
    const submission = {
      session,
      parseSpecial: false,
      sampling: '',
      maxTokens: 1,
      stop: [],
      ignoreEnd: false,
    } as const;
    await assert.rejects(calls.submit({ ...submission, prompt: 'text', text: 'x' }, ring.signal), mismatch);
    await assert.rejects(
      calls.submit({ ...submission, prompt: 'tokens', tokens: { ids: [1] } }, ring.signal),
      mismatch,
    );
    await assert.rejects(calls.gather(session, request, ring.signal)[Symbol.asyncIterator]().next(), mismatch);
    await assert.rejects(calls.settle(session, request, ring.signal), mismatch);
    await assert.rejects(ring.head.call(['Outer', 'Cancel'], at, options), mismatch);
    await assert.rejects(ring.head.call(['Outer', 'CloseSession'], at, options), mismatch);
    const { end, tokens } = await ring.hear(session, request);
    assert.deepEqual([end.reason, tokens.length], ['length', 6], 'nobody cancelled or closed it');
    await held.letGo();
    await ring.untilEmpty();
  });

  test('is refused by every command, on every host, and nothing changes', async () => {
    const before = await Promise.all(agents.hosts.map((host) => ring.status(host)));
    for (const host of agents.hosts) {
      const client = agents.fleet.client(host);
      for (const command of ['Link', 'Unload'] as const)
        await assert.rejects(client.call(['Agent', command], otherAddress(), options), mismatch);
      await assert.rejects(client.call(['Agent', 'Probe'], otherAddress(), options), mismatch);
      const load = client.stream(['Agent', 'Load'], loadRequest(), { deadlineMs: limits.answerMs });
      await assert.rejects(load.next(), { code: 'RING_TAKEN' });
    }
    const now = await Promise.all(agents.hosts.map((host) => ring.status(host)));
    for (const [index, { phase, loadId, nodes }] of now.entries()) {
      assert.equal(phase, before[index]?.phase);
      assert.equal(loadId, before[index]?.loadId);
      assert.deepEqual(
        nodes.map(({ pid }) => pid),
        before[index]?.nodes.map(({ pid }) => pid),
      );
    }
  });

  /** A load of the same plan under another number. */
  function loadRequest() {
    const { plan: parsed, digest } = ring.plan;
    const stages = parsed.stages.map(() => ({
      sliceId: 'a'.repeat(64),
      sliceBytes: '0',
      address: '127.0.0.1',
      port: 1,
    }));
    const text = JSON.stringify(planFileOf(parsed));
    return { ...otherAddress(), loadId: '0'.repeat(32), planDigest: digest, plan: text, stages };
  }
});

describe('two loaders that race for the name of a ring', () => {
  test('on one host: exactly one has it, and the other is told so', async () => {
    const ends = await race({
      ring: 'raced',
      stages: [
        ['local', '0-3'],
        ['local', '4-7'],
      ],
    });
    assert.deepEqual(ends.map(({ exit }) => exit).sort(), [0, 3]);
    for (const { exit, err } of ends) assert.equal(/^RING_TAKEN: /m.test(err), exit === 3, err);
    const winner = ends.findIndex(({ exit }) => exit === 0);
    assert.equal((await inferred('raced', winner)).exit, 0);
    assert.notEqual((await inferred('raced', 1 - winner)).exit, 0);
    const kept = join(folderOf(states[1 - winner] ?? ''), 'generations', 'raced.json');
    assert.ok(!existsSync(kept), 'a load that no agent took leaves no generation behind');
    assert.equal((await unloaded('raced', winner)).exit, 0);
  });

  test('on two hosts: never both, and who has it not leaves nothing', async () => {
    const ends = await race({ ...plan, ring: 'raced-across' });
    assert.ok(ends.filter(({ exit }) => exit === 0).length <= 1);
    for (const { exit, err } of ends) assert.equal(/^RING_TAKEN: /m.test(err), exit === 3, err);
    const winner = ends.findIndex(({ exit }) => exit === 0);
    if (winner >= 0) assert.equal((await unloaded('raced-across', winner)).exit, 0);
    for (const host of agents.hosts) assert.deepEqual((await agents.status(host, 'raced-across')).rings, []);
  });

  /** Operators of one fleet, each with a state folder of their own. */
  const states = ['first', 'second'] as const;
  const folderOf = (state: string): string => join(agents.home.folder, `${state}-state`);
  const planFile = (name: string): string => join(agents.home.folder, `${name}.yaml`);

  async function race(raced: RingPlan) {
    const path = agents.writePlan(raced);
    for (const state of states) {
      for (const part of ['pki', 'fleet.json']) {
        if (!existsSync(join(folderOf(state), part)))
          cpSync(join(agents.state.root, part), join(folderOf(state), part), { recursive: true });
      }
      cpSync(join(agents.state.root, 'slices'), join(folderOf(state), 'slices'), { recursive: true });
    }
    return Promise.all(states.map((state) => agents.home.run(['load', path, '--state', folderOf(state)])));
  }

  const inferred = (name: string, state: number) =>
    agents.home.run(['infer', planFile(name), 'Once', '--max-tokens', '2', '--state', folderOf(states[state] ?? '')]);
  const unloaded = (name: string, state: number) =>
    agents.home.run(['unload', planFile(name), '--state', folderOf(states[state] ?? '')]);
});

describe('a plan that changed', () => {
  test('is refused under the number of the one that stands (G6)', async () => {
    await assert.rejects(agents.load({ ...plan, context: 512 }), { code: 'RING_LOADED' });
    assert.equal((await agents.load(plan)).generation, ring.generation, 'the same plan again confirms what stands');
  });
});

describe('the number of a load', () => {
  test('is in no file, no log and no command line of an agent or a stage, after all that may happen to a ring (G4)', async () => {
    await ring.askAlone({ prompt: 'Once upon a time', maxTokens: 8 });
    await assert.rejects(ring.head.call(['Agent', 'Probe'], otherAddress(), { deadlineMs: limits.answerMs }), P4Error);
    const { pid } = await ring.node(1);
    process.kill(pid, 'SIGKILL');
    const isBack = async (): Promise<boolean> => {
      const node = (await ring.nodes())[1];
      return node !== undefined && node.pid !== 0 && node.pid !== pid;
    };
    await eventually(isBack, { what: 'its agent has started it again' });
    await agents.agent('local-2').kill();
    await agents.agent('local-2').start();
    ring = await agents.load(plan);
    await ring.askAlone({ prompt: 'Once upon a time', maxTokens: 8 });

    const forms = formsOf(ring.generation);
    const kept = join(agents.state.generations, `${ring.name}.json`);
    assert.ok(
      forms.some((form) => readFileSync(kept).includes(form)),
      'it can be found: the loader keeps it',
    );
    assert.equal(statSync(kept).mode & 0o777, 0o600);
    const places = [...diskPlaces(), ...logPlaces(), ...processPlaces()];
    assert.ok(places.length > 20);
    for (const { name, bytes } of places) {
      for (const form of forms) assert.ok(!bytes.includes(form), `the generation is in ${name}`);
    }
  });

  interface Place {
    readonly name: string;
    readonly bytes: Buffer;
  }

  /** Decimal, hexadecimal, and its eight bytes in both orders. */
  function formsOf(generation: bigint): Buffer[] {
    const [little, big] = [Buffer.alloc(8), Buffer.alloc(8)];
    little.writeBigUInt64LE(generation);
    big.writeBigUInt64BE(generation);
    const hexadecimal = generation.toString(16);
    return [
      ...[generation.toString(), hexadecimal, hexadecimal.toUpperCase()].map((text) => Buffer.from(text)),
      little,
      big,
    ];
  }

  /** All that agents, stages and loaders made, but for the folders of generations. */
  function diskPlaces(): Place[] {
    const { folder, state } = agents.home;
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.parentPath !== join(state, 'generations'))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((name) => ({ name, bytes: readFileSync(name) }));
  }

  const logPlaces = (): Place[] =>
    agents.hosts.map((host) => ({ name: `the log of ${host}`, bytes: Buffer.from(agents.agent(host).log) }));

  /** What `ps` and the environment show. */
  function processPlaces(): Place[] {
    const pids = agents.home.processes().map((line) => line.split(' ')[0] ?? '');
    assert.equal(pids.length, 4, 'two agents and two stages');
    return pids.flatMap((pid) =>
      ['cmdline', 'environ'].map((file) => {
        const name = `/proc/${pid}/${file}`;
        return { name, bytes: readFileSync(name) };
      }),
    );
  }
});

describe('a generation file that is lost', () => {
  const program = join(import.meta.dirname, '../../agent/host/main.js');
  const forget = (host: string, name: string): { status: number | null; stdout: string; stderr: string } => {
    const config = join(agents.agent(host).config.stateFolder, 'agent.json');
    const words = [program, 'forget', name, '--yes', '--config', config];
    return spawnSync(process.execPath, words, { encoding: 'utf8' });
  };

  test('has its ring forgotten on each host, by the agent that runs it, and its name is free again (G7)', async () => {
    const lost = await agents.load({ ...plan, ring: 'mislaid' });
    const pids = (await lost.nodes()).map(({ pid }) => pid);
    rmSync(join(agents.home.state, 'generations/mislaid.json'));
    for (const host of ['local', 'local-2']) {
      const { status, stdout, stderr } = forget(host, lost.name);
      assert.equal(status, 0, stderr);
      assert.match(stdout, /1 of its stages ended here[^]*every other host/);
      assert.equal(forget(host, lost.name).status, 3, 'it is forgotten already');
    }
    for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    const { exit, err } = await agents.home.run(['load', lost.plan.path]);
    assert.equal(exit, 0, err);
    assert.equal((await agents.home.run(['unload', lost.plan.path])).exit, 0);
  });
});

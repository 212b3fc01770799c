/**
 * A real `load` or `unload` is killed at its failpoints: the same load again, or an unload, always finds its way (G1, G2,
 * G6). The simulation of the loader goes through every moment; this shows that the real one has the same places.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { LocalAgents, type RingPlan } from '../fixture/local-agents.ts';

const killed = 128 + 9;
const story = { prompt: 'Once upon a time', maxTokens: 8 };
const begins = ', there lived a young boy';
const plan: RingPlan = {
  ring: 'crash',
  stages: [
    ['local', '0-3'],
    ['local-2', '4-7'],
  ],
};

let agents: LocalAgents;
let path: string;

before(async () => {
  agents = await LocalAgents.start(2);
  path = agents.writePlan(plan);
});
after(async () => {
  await agents.stop();
});

interface KeptFile {
  readonly generation: string;
  readonly phase: string;
}

function kept(ring = 'crash'): KeptFile | null {
  const file = join(agents.state.generations, `${ring}.json`);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KeptFile) : null;
}

/** Runs a command that is killed at a failpoint. */
async function killedAt(point: string, command: 'load' | 'unload', planPath = path): Promise<void> {
  const { exit, out, err } = await agents.home.start([command, planPath], '', { P4_LOADER_FAIL: point }).ended;
  assert.equal(exit, killed, `${command} comes to "${point}": ${out}${err}`);
}

async function takesDown(planPath = path): Promise<void> {
  const { exit, err } = await agents.home.run(['unload', planPath]);
  assert.equal(exit, 0, err);
  for (const host of agents.hosts)
    assert.deepEqual((await agents.status(host)).rings, [], `nothing is left on ${host}`);
  assert.equal(agents.home.processes().length, agents.hosts.length, 'the agents, and no stage');
}

describe('a load that is killed', () => {
  const points = [
    ...['before keep loading', 'after keep loading', 'after load local', 'before probe local', 'before keep ready'],
    'after keep ready',
  ];
  for (const [index, point] of points.entries()) {
    const isMended = index % 2 === 0;
    test(`${point} is ${isMended ? 'loaded by the same load again' : 'taken down by an unload'}`, async () => {
      const former = kept();
      await killedAt(point, 'load');
      const begun = kept();
      assert.equal(begun?.generation === former?.generation, point === 'before keep loading');
      if (isMended) {
        const ring = await agents.load(plan);
        if (point !== 'before keep loading') assert.equal(ring.generation.toString(), begun?.generation);
        assert.equal(kept()?.phase, 'ready');
        assert.ok((await ring.askAlone(story)).text.startsWith(begins));
        assert.equal((await agents.home.run(['status', path])).exit, 0);
      }
      // Of a load that was killed before it had a number there is nothing to take down, and nobody to say so.
      if (kept() !== null) await takesDown();
    });
  }
});

describe('a load that is killed while it takes itself back', () => {
  let bad: string;
  before(() => {
    bad = join(agents.home.folder, 'bad.yaml');
    const file = JSON.parse(readFileSync(path, 'utf8')) as { ring: string; stages: object[] };
    file.ring = 'bad';
    file.stages = [
      { host: 'local', layers: '0-3' },
      { host: 'local-2', layers: '4-7', device: { gpu: 63 } },
    ];
    writeFileSync(bad, JSON.stringify(file));
  });

  for (const point of ['after unload local-2', 'before keep failed']) {
    test(`${point} is taken down by an unload`, async () => {
      await killedAt(point, 'load', bad);
      assert.equal(kept('bad')?.phase, 'loading', 'an agent may still hold it');
      await takesDown(bad);
      assert.equal(kept('bad')?.phase, 'unloaded');
    });
  }
});

describe('an unload that is killed', () => {
  test('is finished by the next one; until then the ring is not loaded again', async () => {
    const { generation } = await agents.load(plan);
    await killedAt('after unload local', 'unload');
    assert.equal(kept()?.phase, 'unloading');
    const { exit, err } = await agents.home.run(['load', path]);
    assert.match(err, /^RING_HALF_UNLOADED/m);
    assert.equal(exit, 3);
    assert.equal(kept()?.generation, generation.toString());
    await takesDown();
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesOf, isTierName, tierOrder, tiers } from './tiers.ts';

test('every test source belongs to exactly one tier', () => {
  const sources = [
    'agent/step.test.ts',
    'test/structure/names.test.ts',
    'test/simulation/loss.test.ts',
    'agent/step.simulation.test.ts',
    'test/exactness/stories.engine.test.ts',
    'test/two-agents.ring.test.ts',
    'test/run/tiers.test.ts',
    'test/hosts/three.hosts.test.ts',
  ];
  assert.deepEqual(filesOf('unit', sources), ['agent/step.test.ts', 'test/run/tiers.test.ts']);
  assert.deepEqual(filesOf('structure', sources), ['test/structure/names.test.ts']);
  assert.deepEqual(filesOf('simulation', sources), ['test/simulation/loss.test.ts', 'agent/step.simulation.test.ts']);
  assert.deepEqual(filesOf('engine', sources), ['test/exactness/stories.engine.test.ts']);
  assert.deepEqual(filesOf('ring', sources), ['test/two-agents.ring.test.ts']);
  assert.deepEqual(filesOf('hosts', sources), ['test/hosts/three.hosts.test.ts']);
  assert.equal(tierOrder.flatMap((name) => filesOf(name, sources)).length, sources.length);
});

test('every tier has its turn once, and rings run two at a time', () => {
  assert.deepEqual([...tierOrder].sort(), tiers.map(({ name }) => name).sort());
  assert.equal(tiers.find(({ name }) => name === 'ring')?.concurrency, 2);
  assert.ok(isTierName('ring'));
  assert.equal(isTierName('rings'), false);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, call, loadInput, planOver, readyAgent, ring } from '../test/simulation/toy-agent.ts';

test('a load that comes again tells where agents are reached now, and how long a loss is waited for', () => {
  const agent = readyAgent();
  const former = loadInput(planOver([alpha]));
  const placements = former.placements.map((placement) => ({ ...placement, address: '10.0.0.9', port: 7500 }));
  const plan = { ...former.plan, deadlineSeconds: 20 };
  agent.dispatch({ ...former, call: call(9), plan, placements });
  const standing = agent.state.rings.get(ring);
  assert.ok(standing?.kind === 'live');
  assert.deepEqual(standing.placements, placements);
  assert.deepEqual(standing.plan, plan);
  assert.deepEqual(agent.replies.get(call(9)), { kind: 'loaded', confirmed: true });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { nodeIndex } from '../protocol/ids.ts';
import { alpha, call, load, readyAgent, right, ring, stageUp } from '../test/simulation/toy-agent.ts';

test('a probe that joins the one of a recovery tells how long that one’s own round took, not the outage', () => {
  const agent = readyAgent();
  const of = { ring, load, node: nodeIndex(0), incarnation: 1 };
  agent.dispatch({ kind: 'stage-lost', ...of, error: new P4Error('STAGE_LOST', { host: alpha }), atMs: 1_000 });
  agent.dispatch({ kind: 'retry', ring, load, suspension: 1, attempt: 0, atMs: 1_250 });
  stageUp(agent, 1, 30_000);
  agent.dispatch({ kind: 'probe', call: call(9), ring, generation: right, nonce: 6, atMs: 30_003 });
  assert.ok(!agent.replies.has(call(9)), 'it waits for the probe on its way');
  assert.ok(agent.turn(30_007));
  assert.deepEqual(agent.replies.get(call(9)), { kind: 'probed', roundMs: 7 });
});

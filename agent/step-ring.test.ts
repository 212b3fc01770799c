import assert from 'node:assert/strict';
import { test } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { hostName, nodeIndex } from '../protocol/ids.ts';
import {
  alpha,
  call,
  load,
  loadInput,
  planOver,
  readyAgent,
  right,
  ring,
  stageUp,
  ToyAgent,
} from '../test/simulation/toy-agent.ts';

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

test('two loaders of one load at once are both told of its links and its probe (G6)', () => {
  const beta = hostName('beta');
  const agent = new ToyAgent(2).dispatch(loadInput(planOver([alpha, beta]), { call: call(1) }));
  agent.dispatch(loadInput(planOver([alpha, beta]), { call: call(2) }));
  stageUp(agent, 0);
  const at = { ring, generation: right, atMs: 0 };
  for (const id of [3, 4]) agent.dispatch({ kind: 'link', call: call(id), ...at });
  const up = { source: nodeIndex(0), destination: nodeIndex(1), address: '127.0.0.1', peer: beta };
  agent.dispatch({ kind: 'link-up', ring, load, link: up, atMs: 0 });
  for (const id of [5, 6]) agent.dispatch({ kind: 'probe', call: call(id), ...at, nonce: id });
  assert.ok(agent.turn(9));
  const kinds = [1, 2, 3, 4, 5, 6].map((id) => agent.replies.get(call(id))?.kind);
  assert.deepEqual(kinds, ['loaded', 'loaded', 'linked', 'linked', 'probed', 'probed']);
});

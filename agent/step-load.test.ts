import assert from 'node:assert/strict';
import { test } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import {
  alpha,
  call,
  claim,
  load,
  loadInput,
  open,
  planOver,
  readyAgent,
  right,
  ring,
  toldTerms,
  ToyAgent,
} from '../test/simulation/toy-agent.ts';
import { emptyMemory } from './head/memory.ts';

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
  const terms = { deadlineSeconds: 20, addresses: [{ address: '10.0.0.9', port: 7500 }] };
  assert.deepEqual(agent.records.at(-1), { kind: 'load-told', load, ...terms });
  const records = agent.records.length;
  agent.dispatch({ ...former, call: call(10), plan, placements });
  assert.equal(agent.records.length, records, 'the same terms again are nothing new');
});

const memory = emptyMemory;
const again = loadInput(planOver([alpha]), { call: call(4), digestMatches: true });

test('an empty ring that is loaded again under other terms keeps those', () => {
  const former = { deadlineSeconds: 60, addresses: [{ address: '10.0.0.1', port: 7400 }] };
  const agent = new ToyAgent().dispatch({ kind: 'restored', ...claim, memory, terms: former }).dispatch(again);
  assert.deepEqual(agent.records, [{ kind: 'load-told', load, ...toldTerms }]);
  const same = new ToyAgent().dispatch({ kind: 'restored', ...claim, memory }).dispatch(again);
  assert.deepEqual(same.records, []);
});

test('a load that this p4 cannot read starts no stage, says so, and can be given up', () => {
  const fault = new P4Error('LOAD_NOT_READABLE', { ring, host: alpha });
  const agent = new ToyAgent().dispatch({ kind: 'restored', ...claim, memory, fault }).dispatch(again);
  assert.deepEqual(agent.started, []);
  assert.equal(agent.refusal(4), 'LOAD_NOT_READABLE');
  assert.equal(open(agent, 5).refusal(5), 'LOAD_NOT_READABLE');
  agent.dispatch({ kind: 'unload', call: call(6), ring, generation: right, digestMatches: true });
  assert.equal(agent.replies.get(call(6))?.kind, 'unloaded');
  assert.equal(agent.state.rings.size, 0);
});

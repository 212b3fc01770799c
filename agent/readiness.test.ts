import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import {
  alpha,
  call,
  load,
  loadInput,
  planOver,
  readyAgent,
  right,
  ring,
  ToyAgent,
} from '../test/simulation/toy-agent.ts';
import { emptyMemory } from './head/memory.ts';
import { readinessOf, type Readiness } from './readiness.ts';

const answering = { journalFailure: null, stageSilentMs: () => 0 };
const standing = (agent: ToyAgent): Readiness => readinessOf(agent.state, answering);
const stateOf = (agent: ToyAgent): string => standing(agent).rings[0]?.state ?? 'none';

test('an agent is ready with no ring, and with one that is loaded for the first time', () => {
  const agent = new ToyAgent();
  assert.deepEqual(standing(agent), { isReady: true, rings: [], journal: null });
  agent.dispatch(loadInput(planOver([alpha])));
  assert.deepEqual([stateOf(agent), standing(agent).isReady], ['coming', true]);
});

test('it is not while a ring that served waits for a part, nor while one waits for its loader', () => {
  const agent = readyAgent();
  assert.equal(stateOf(agent), 'ready');
  const error = new P4Error('STAGE_LOST', {});
  agent.dispatch({ kind: 'link-lost', ring, load, error, atMs: 5 });
  const lost = standing(agent);
  assert.deepEqual(lost, { isReady: false, rings: [{ ring, state: 'degraded', code: 'STAGE_LOST' }], journal: null });
  agent.dispatch({ kind: 'unload', call: call(9), ring, generation: right, digestMatches: false });
  assert.equal(stateOf(agent), 'coming', 'one that is taken down is not missed');
  const claimed = new ToyAgent().dispatch({
    ...{ kind: 'restored', ring, load, planDigest: '', generationDigest: { salt: '', hash: '' } },
    ...{ memory: emptyMemory, terms: { deadlineSeconds: 0, addresses: [] }, fault: null },
  });
  assert.deepEqual(standing(claimed).rings, [{ ring, state: 'degraded', code: 'RING_EMPTY' }]);
});

test('it is not while its journal cannot be written', () => {
  const failure = new P4Error('JOURNAL_WRITE_FAILED', {});
  assert.deepEqual(readinessOf(new ToyAgent().state, { ...answering, journalFailure: failure }), {
    ...{ isReady: false, rings: [], journal: 'JOURNAL_WRITE_FAILED' },
  });
});

test('it is not while a stage of the ring does not answer (R1)', () => {
  const { state } = readyAgent();
  assert.deepEqual(readinessOf(state, { ...answering, stageSilentMs: (of) => (of.load === load ? 4000 : 0) }), {
    ...{ isReady: false, rings: [{ ring, state: 'degraded', code: 'STAGE_SILENT' }], journal: null },
  });
});

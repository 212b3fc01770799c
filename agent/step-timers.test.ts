import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  alpha,
  call,
  load,
  loadInput,
  open,
  planOver,
  readyAgent,
  right,
  ring,
  submit,
  ToyAgent,
} from '../test/simulation/toy-agent.ts';
import { HeadRecall } from './head/memory.ts';

test('the deadline of a ring that is taken down ends no request a second time (S3)', () => {
  const former = open(readyAgent(), 10);
  submit(former, 11, { session: 1, prompt: [5], maxTokens: 9 }).turn();
  const recall = new HeadRecall({ session: 0, request: 0 });
  for (const record of former.records) recall.add(record);
  const claim = { ring, load, planDigest: 'digest', generationDigest: { salt: '', hash: '' } };
  const agent = new ToyAgent()
    .dispatch({ kind: 'restored', ...claim, memory: recall.memory, deadlineMs: 60_000 })
    .dispatch(loadInput(planOver([alpha]), { call: call(20), digestMatches: true }))
    .dispatch({ kind: 'unload', call: call(21), ring, generation: right, digestMatches: false });
  const before = agent.state;
  agent.dispatch({ kind: 'recovery-deadline', ring, load, suspension: 1, atMs: 1e12 });
  assert.equal(agent.state, before);
  assert.equal(agent.records.filter(({ kind }) => kind === 'request-ended').length, 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestId, sessionId } from '../protocol/ids.ts';
import { call, open, readyAgent, right, ring, submit, type ToyAgent } from '../test/simulation/toy-agent.ts';

const settle = (agent: ToyAgent, id: number): string | undefined => {
  const of = { session: sessionId(0), request: requestId(1) };
  agent.dispatch({ kind: 'settle', call: call(id), ring, generation: right, ...of });
  const reply = agent.replies.get(call(id));
  return reply?.kind === 'settlement' ? reply.settlement.kind : reply?.kind;
};

test('a settlement is answered at once, whatever the request does (S3)', () => {
  const agent = open(readyAgent(), 10);
  submit(agent, 11, { session: 1, prompt: [5], maxTokens: 9 }).turn();
  assert.equal(settle(agent, 12), 'running');
  const of = { session: sessionId(1), request: requestId(1) };
  agent.dispatch({ kind: 'cancel', call: call(13), ring, generation: right, ...of });
  assert.equal(settle(agent, 14), 'ending', 'its receipts are on their way');
  agent.turnAll();
  assert.equal(agent.records.filter(({ kind }) => kind === 'request-settled').length, 1);
  assert.equal(settle(agent, 15), 'settled');
  assert.equal(settle(agent, 16), 'settled');
});

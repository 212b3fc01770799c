import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { nodeIndex } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
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
  stageUp,
  submit,
  ToyAgent,
} from '../test/simulation/toy-agent.ts';
import { HeadRecall } from './head/memory.ts';
import { step } from './step.ts';

test('the deadline of a ring that is taken down ends no request a second time (S3)', () => {
  const former = open(readyAgent(), 10);
  submit(former, 11, { session: 1, prompt: [5], maxTokens: 9 }).turn();
  const recall = new HeadRecall({ session: 0, request: 0 });
  for (const record of former.records) recall.add(record);
  const agent = new ToyAgent()
    .dispatch({ kind: 'restored', ...claim, memory: recall.memory })
    .dispatch(loadInput(planOver([alpha]), { call: call(20), digestMatches: true }))
    .dispatch({ kind: 'unload', call: call(21), ring, generation: right, digestMatches: false });
  const before = agent.state;
  agent.dispatch({ kind: 'recovery-deadline', ring, load, suspension: 2, atMs: 1e12 });
  assert.equal(agent.state, before);
  assert.equal(agent.records.filter(({ kind }) => kind === 'request-ended').length, 1);
});

suite('the deadline of a ring that has lost a stage', () => {
  const deadlineMs = 60_000;

  function lossy(): ToyAgent {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5], maxTokens: 9 }).turn();
    const error = new P4Error('STAGE_LOST', { node: 0, host: alpha });
    const of = { ring, load, node: nodeIndex(0), incarnation: 1 };
    return agent.dispatch({ kind: 'stage-lost', ...of, error, atMs: 1000 });
  }

  /** How long it waits on, or that its request has failed. */
  function atDeadline(agent: ToyAgent, atMs: number): number | 'failed' {
    const { state } = agent;
    const { effects, records } = step(state, { kind: 'recovery-deadline', ring, load, suspension: 1, atMs });
    const again = effects.find(({ kind }) => kind === 'await-deadline');
    if (records.some(({ kind }) => kind === 'request-ended')) return 'failed';
    assert.ok(again?.kind === 'await-deadline');
    return again.ms;
  }

  test('stops while its stage loads, and counts anew when that has ended (R1)', () => {
    const agent = lossy();
    assert.equal(atDeadline(agent, 1000 + deadlineMs), 'failed');
    agent.dispatch({ kind: 'retry', ring, load, suspension: 1, attempt: 0, atMs: 1250 });
    assert.equal(atDeadline(agent, 1000 + deadlineMs), deadlineMs);
    stageUp(agent, 1, 50_000);
    assert.equal(atDeadline(agent, 1000 + deadlineMs), 49_000);
    assert.equal(atDeadline(agent, 50_000 + deadlineMs), 'failed');
  });

  test('counts from the end of a stage that loaded until it was lost (R1)', () => {
    const agent = lossy();
    agent.dispatch({ kind: 'retry', ring, load, suspension: 1, attempt: 0, atMs: 1250 });
    const error = new P4Error('STAGE_LOST', { node: 0, host: alpha });
    const of = { ring, load, node: nodeIndex(0), incarnation: 2 };
    agent.dispatch({ kind: 'stage-lost', ...of, error, atMs: 50_000 });
    assert.equal(atDeadline(agent, 1000 + deadlineMs), 49_000);
    assert.equal(atDeadline(agent, 50_000 + deadlineMs), 'failed');
  });

  test('is not put off for a stage that ends whenever it is started (R4)', () => {
    const agent = lossy();
    for (let attempt = 0; attempt < limits.stagesLostMost; attempt += 1) {
      const atMs = 2000 + 1000 * attempt;
      agent.dispatch({ kind: 'retry', ring, load, suspension: 1, attempt, atMs });
      assert.equal(atDeadline(agent, 1000 + deadlineMs), deadlineMs);
      const error = new P4Error('STAGE_LOST', { node: 0, host: alpha });
      const of = { ring, load, node: nodeIndex(0), incarnation: attempt + 2 };
      agent.dispatch({ kind: 'stage-lost', ...of, error, atMs: atMs + 100 });
    }
    agent.dispatch({ kind: 'retry', ring, load, suspension: 1, attempt: limits.stagesLostMost, atMs: 50_000 });
    assert.equal(atDeadline(agent, 1000 + deadlineMs), 3100, 'from the last that could be hoped for');
    assert.equal(atDeadline(agent, 4100 + deadlineMs), 'failed');
  });

  test('is put off for a stage that loads anywhere in the ring, up to the second limit (R1, R4)', () => {
    const agent = lossy();
    agent.dispatch({ kind: 'neighbour-loads', ring, load, source: nodeIndex(0), atMs: 40_000 });
    assert.equal(atDeadline(agent, 1000 + deadlineMs), 39_000);
    assert.equal(atDeadline(agent, 40_000 + deadlineMs), 'failed');
    const lateMs = 1000 + deadlineMs + limits.reloadMs;
    agent.dispatch({ kind: 'neighbour-loads', ring, load, source: nodeIndex(0), atMs: lateMs - 1 });
    assert.equal(atDeadline(agent, lateMs), 'failed');
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { sessionId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { call, open, readyAgent, right, ring, submit, type ToyAgent } from '../test/simulation/toy-agent.ts';

describe('a ring whose sessions are all taken', () => {
  const at = { ring, generation: right };
  const waiting = (agent: ToyAgent, id: number): ToyAgent =>
    agent.dispatch({ kind: 'open-session', call: call(id), ...at, owner: null, waits: true });
  const closed = (agent: ToyAgent, id: number, session: number): ToyAgent =>
    agent.dispatch({ kind: 'close-session', call: call(id), ...at, session: sessionId(session) });

  it('says that it is busy', () => {
    const agent = open(open(readyAgent(1), 10), 11);
    assert.equal(agent.refusal(11), 'RING_BUSY');
  });

  it('gives the session that ends to whoever waits, in the order of calls', () => {
    const agent = waiting(waiting(open(readyAgent(1), 10), 11), 12);
    assert.deepEqual([agent.replies.get(call(11)), agent.replies.get(call(12))], [undefined, undefined]);
    closed(agent, 20, 1);
    assert.equal(agent.replies.get(call(11))?.kind, 'session-opened');
    assert.equal(agent.replies.get(call(12)), undefined);
    closed(agent, 21, 2);
    assert.equal(agent.replies.get(call(12))?.kind, 'session-opened');
  });

  it('forgets a caller that has gone', () => {
    const agent = waiting(waiting(open(readyAgent(1), 10), 11), 12);
    agent.dispatch({ kind: 'leave-queue', call: call(11), ...at });
    assert.equal(agent.refusal(11), 'CANCELLED');
    closed(agent, 20, 1);
    assert.equal(agent.replies.get(call(12))?.kind, 'session-opened');
  });

  it('lets so many wait and no more, and says when to try again', () => {
    const agent = open(readyAgent(1), 10);
    for (let id = 0; id < limits.waitingSessions; id += 1) waiting(agent, 100 + id);
    waiting(agent, 1000);
    assert.equal(agent.refusal(1000), 'RING_BUSY');
    const reply = agent.replies.get(call(1000));
    assert.ok(reply?.kind === 'refused');
    assert.deepEqual(
      [reply.error.facts['waiting'], reply.error.facts['retryAfterSeconds']],
      [limits.waitingSessions, limits.busyRetrySeconds],
    );
  });

  it('refuses all who wait when it ends', () => {
    const agent = waiting(open(readyAgent(1), 10), 11);
    agent.dispatch({ kind: 'unload', call: call(20), ...at, digestMatches: true });
    assert.notEqual(agent.refusal(11), null);
  });
});

describe('clients that come and go while the head stage stands still', () => {
  it('are refused before more waits for it than one frame takes', () => {
    const agent = readyAgent();
    let id = 10;
    while (agent.refusal(id) === null) {
      id += 3;
      assert.ok(id < 10 * limits.waitingItems, 'they are refused at some time');
      const session = Math.floor(id / 3) - 3;
      open(agent, id);
      submit(agent, id + 1, { session, prompt: [5], maxTokens: 1 });
      agent.dispatch({
        kind: 'close-session',
        call: call(id + 2),
        ring,
        generation: right,
        session: sessionId(session),
      });
    }
    assert.equal(agent.refusal(id), 'RING_STALLED');
    agent.turn();
    agent.turn();
    assert.ok((agent.frames[0]?.items.length ?? 0) <= limits.frameItems);
    agent.turnAll();
    assert.equal(agent.toy.openLeases, 0);
    assert.equal(open(agent, 1).replies.get(call(1))?.kind, 'session-opened', 'the ring goes on');
  });
});

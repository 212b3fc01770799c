import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { noStep } from '../protocol/hop-frame.ts';
import { nodeIndex, requestId, ringName, sessionId, tokenId } from '../protocol/ids.ts';
import {
  alpha,
  call,
  claim,
  load,
  loadInput,
  makeReady,
  open,
  planOver,
  readyAgent,
  right,
  ring,
  stageUp,
  submit,
  ToyAgent,
  wrong,
} from '../test/simulation/toy-agent.ts';
import { toyCompletion } from '../test/simulation/toy-ring.ts';
import { HeadRecall } from './head/memory.ts';

describe('a load', () => {
  it('is written down before a stage starts, and answered when the last stage is up', () => {
    const agent = new ToyAgent(2).dispatch(loadInput(planOver([alpha, alpha])));
    assert.deepEqual(
      agent.records.map(({ kind }) => kind),
      ['load-admitted'],
    );
    stageUp(agent, 0);
    assert.equal(agent.replies.size, 0);
    stageUp(agent, 1);
    assert.deepEqual(agent.replies.get(call(1)), { kind: 'loaded', confirmed: false });
  });

  it('confirms what stands when it comes again (G6)', () => {
    const agent = readyAgent().dispatch(loadInput(planOver([alpha]), { call: call(9) }));
    assert.deepEqual(agent.replies.get(call(9)), { kind: 'loaded', confirmed: true });
    assert.equal(agent.started.length, 1);
  });

  it('whose id another ring has is refused', () => {
    const agent = readyAgent();
    agent.dispatch(loadInput(planOver([alpha]), { call: call(8), ring: ringName('other') }));
    assert.equal(agent.refusal(8), 'INVALID_ARGUMENT');
  });

  it('refuses another load of the name, and the same generation with another plan (G6)', () => {
    const agent = readyAgent();
    agent.dispatch(loadInput(planOver([alpha]), { call: call(8), generation: wrong }));
    agent.dispatch(loadInput(planOver([alpha]), { call: call(9), planDigest: 'another' }));
    assert.equal(agent.refusal(8), 'RING_TAKEN');
    assert.equal(agent.refusal(9), 'PLAN_DIFFERS');
    assert.equal(agent.started.length, 1);
    assert.deepEqual(agent.stopped, []);
  });

  it('that fails on one stage ends the others and leaves nothing of itself', () => {
    const agent = new ToyAgent(2).dispatch(loadInput(planOver([alpha, alpha])));
    stageUp(agent, 0);
    const error = new P4Error('SLICE_MISMATCH');
    agent.dispatch({ kind: 'stage-lost', ring, load, node: nodeIndex(1), incarnation: 2, error, atMs: 0 });
    assert.equal(agent.replies.size, 0, 'the answer waits until nothing stands');
    agent.dispatch({ kind: 'stage-stopped', ring, load, node: nodeIndex(0), incarnation: 1 });
    assert.equal(agent.refusal(1), 'SLICE_MISMATCH');
    assert.equal(agent.state.rings.size, 0);
    assert.deepEqual(agent.records.at(-1), { kind: 'load-ended', load, by: 'failed-load' });
  });

  it('found in the journal after a restart is loaded by its own generation only (G4, R2)', () => {
    const agent = new ToyAgent();
    const memory = new HeadRecall({ session: 7, request: 8 }).memory;
    agent.dispatch({ kind: 'restored', ...claim, memory });
    agent.dispatch(loadInput(planOver([alpha]), { call: call(4), digestMatches: false }));
    assert.equal(agent.refusal(4), 'RING_TAKEN');
    open(agent, 5);
    assert.equal(agent.refusal(5), 'RING_EMPTY');
    agent.dispatch(loadInput(planOver([alpha]), { call: call(6), digestMatches: true }));
    stageUp(agent, 0);
    assert.equal(agent.replies.get(call(6))?.kind, 'loaded');
    assert.ok(!agent.records.some(({ kind }) => kind === 'load-admitted'), 'the claim stands already');
    agent.turnAll();
    assert.deepEqual(agent.records.at(-1), { kind: 'ring-ready', load }, 'it links and probes itself');
    const opened = open(agent, 7).replies.get(call(7));
    assert.deepEqual(opened, { kind: 'session-opened', session: 8, contextTokens: 64 }, 'no id is used twice (E1)');
  });
});

describe('a call of another generation', () => {
  it('is refused and changes nothing (G3)', () => {
    const agent = open(readyAgent(), 10);
    const before = agent.state;
    const at = { ring, generation: wrong };
    const session = sessionId(1);
    agent.dispatch({ kind: 'unload', call: call(20), ...at, digestMatches: false });
    agent.dispatch({ kind: 'open-session', call: call(21), ...at, owner: null, waits: true });
    agent.dispatch({ kind: 'close-session', call: call(22), ...at, session });
    agent.dispatch({ kind: 'settle', call: call(23), ...at, session, request: requestId(1) });
    agent.dispatch({ kind: 'link', call: call(24), ...at, atMs: 0 });
    for (const id of [20, 21, 22, 23, 24]) assert.equal(agent.refusal(id), 'GENERATION_MISMATCH');
    assert.equal(agent.state, before);
  });
});

describe('a request', () => {
  it('draws what the undisturbed ring draws, is recorded token by token, and settles once', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5, 6, 7], maxTokens: 8 }).turnAll();
    assert.deepEqual(agent.tokens, toyCompletion([5, 6, 7], 8));
    assert.equal(agent.ends[0]?.end.reason, 'length');
    const emitted = agent.records.filter((record) => record.kind === 'token-emitted');
    assert.deepEqual(
      emitted.map(({ token }) => token),
      agent.tokens,
    );
    const settled = agent.records.filter((record) => record.kind === 'request-settled');
    assert.equal(settled.length, 1);
    assert.deepEqual(
      settled[0]?.receipts.map(({ prefilled, decoded }) => [prefilled, decoded]),
      [[3, 7]],
    );
  });

  it('goes on in its session where the last one ended: only new rows run', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5, 6, 7], maxTokens: 4 }).turnAll();
    const first = [...agent.tokens];
    submit(agent, 12, { session: 1, prompt: [8], maxTokens: 3 }).turnAll();
    assert.deepEqual(agent.tokens.slice(4), toyCompletion([5, 6, 7, ...first, 8], 3));
    const last = agent.records.findLast((record) => record.kind === 'request-settled');
    assert.deepEqual(
      last?.receipts.map(({ reused, prefilled }) => [reused, prefilled]),
      [[6, 2]],
    );
  });

  it('of several sessions draws the same as alone, and shares its frames', () => {
    const agent = readyAgent(5);
    const sessions = [1, 2, 3, 4, 5];
    for (const session of sessions) open(agent, 10 + session);
    for (const session of sessions) {
      submit(agent, 20 + session, { session, prompt: [session, 50], maxTokens: 6 });
    }
    const shared = new Map<number, number>();
    while (agent.frames.length > 0) {
      const rows = agent.frames[0]?.items.filter(({ kind }) => kind === 'rows').length ?? 0;
      shared.set(rows, (shared.get(rows) ?? 0) + 1);
      agent.turn();
    }
    for (const session of sessions) {
      const drawn = agent.records.filter((record) => record.kind === 'token-emitted' && record.session === session);
      const tokens = drawn.map((record) => (record.kind === 'token-emitted' ? record.token : -1));
      assert.deepEqual(tokens, toyCompletion([session, 50], 6));
    }
    assert.ok(
      [...shared.keys()].some((rows) => rows > 1),
      'rows of several sessions went together',
    );
  });

  it('refuses what cannot run, and changes nothing', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: Array.from({ length: 65 }, () => 1), maxTokens: 1 });
    submit(agent, 12, { session: 1, prompt: [100], maxTokens: 1 });
    submit(agent, 13, { session: 1, prompt: [], maxTokens: 1 });
    submit(agent, 14, { session: 7, prompt: [1], maxTokens: 1 });
    const codes = [11, 12, 13, 14].map((id) => agent.refusal(id));
    assert.deepEqual(codes, ['PROMPT_TOO_LONG', 'TOKEN_OUT_OF_RANGE', 'PROMPT_EMPTY', 'SESSION_UNKNOWN']);
    assert.ok(!agent.records.some(({ kind }) => kind === 'request-admitted'));
  });

  it('ends when its context is full, with every row that fits', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: Array.from({ length: 60 }, () => 1), maxTokens: 100 }).turnAll();
    assert.equal(agent.ends[0]?.end.reason, 'context-full');
    assert.equal(agent.tokens.length, 5, '60 rows of prompt, 4 of tokens, and the token that the last row drew');
  });

  it('that a stage refused leaves its session, on every stage, as it was before', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5, 6], maxTokens: 2 }).turnAll();
    const first = [...agent.tokens];
    submit(agent, 12, { session: 1, prompt: [7, 8, 9], maxTokens: 2 });
    const failed = { kind: 'failed', session: sessionId(1), request: requestId(2), node: nodeIndex(0) } as const;
    agent
      .dispatch({
        kind: 'returned',
        ring,
        load,
        items: [{ ...failed, why: 'grammar-invalid' }],
        slowest: noStep,
        atMs: 1,
      })
      .turnAll();
    assert.equal(agent.ends[1]?.end.reason, 'refused');
    submit(agent, 13, { session: 1, prompt: [40], maxTokens: 3 }).turnAll();
    assert.deepEqual(agent.tokens.slice(2), toyCompletion([5, 6, ...first, 40], 3));
  });

  it('waits until a request that was cancelled before it is known to have run, or not', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5, 6], maxTokens: 2 }).turnAll();
    const first = [...agent.tokens];
    const [cancelled, next] = [requestId(2), requestId(3)];
    const session = sessionId(1);
    submit(agent, 12, { session: 1, prompt: [7, 8, 9], maxTokens: 2 });
    agent.dispatch({ kind: 'cancel', call: call(13), ring, generation: right, session, request: cancelled });
    submit(agent, 14, { session: 1, prompt: [40], maxTokens: 3 });
    const fed = agent.frames.flatMap(({ items }) => items).filter((item) => item.kind === 'rows');
    assert.deepEqual(
      fed.map(({ request }) => request),
      [cancelled],
    );
    const failed = { kind: 'failed', session, request: cancelled, node: nodeIndex(0), why: 'grammar-invalid' } as const;
    agent.dispatch({ kind: 'returned', ring, load, items: [failed], slowest: noStep, atMs: 1 }).turnAll();
    assert.deepEqual(agent.tokens.slice(2), toyCompletion([5, 6, ...first, 7, 8, 9, 40], 3));
    const settled = agent.records.find((record) => record.kind === 'request-settled' && record.request === next);
    const [receipt] = settled?.kind === 'request-settled' ? settled.receipts : [];
    assert.deepEqual([receipt?.recomputed, receipt?.prefilled], [7, 1], 'nobody knows which rows stages dropped');
  });

  it('takes a doubled draw once (E1)', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5], maxTokens: 3 });
    const frame = agent.frames[0];
    assert.ok(frame !== undefined);
    const token = { kind: 'token', session: sessionId(1), request: requestId(1), step: 0, token: tokenId(43) } as const;
    agent.dispatch({ kind: 'returned', ring, load, items: [token], slowest: noStep, atMs: 1 });
    agent.dispatch({ kind: 'returned', ring, load, items: [token], slowest: noStep, atMs: 1 });
    assert.deepEqual(agent.tokens, [43]);
  });
});

describe('a client that goes away', () => {
  it('frees its slot at once and its leases with the next frame, in the middle of a prompt or of a text', () => {
    for (const turns of [0, 1, 5]) {
      const agent = open(readyAgent(1), 10);
      submit(agent, 11, { session: 1, prompt: Array.from({ length: 40 }, (_, index) => index), maxTokens: 20 });
      for (let count = 0; count < turns; count++) agent.turn();
      agent.dispatch({ kind: 'close-session', call: call(12), ring, generation: right, session: sessionId(1) });
      assert.equal(agent.ends[0]?.end.reason, 'cancelled');
      assert.equal(open(agent, 13).replies.get(call(13))?.kind, 'session-opened', 'the one slot is free again');
      agent.dispatch({ kind: 'close-session', call: call(14), ring, generation: right, session: sessionId(2) });
      agent.turnAll();
      assert.equal(agent.toy.openLeases, 0);
      assert.equal(agent.records.filter(({ kind }) => kind === 'request-settled').length, 1);
    }
  });
});

describe('a lost stage', () => {
  const error = new P4Error('STAGE_LOST', { ring, node: 0, host: alpha });
  const lost = { kind: 'stage-lost', ring, load, node: nodeIndex(0), error, atMs: 1000 } as const;
  const retry = { kind: 'retry', ring, load, suspension: 1, attempt: 0, atMs: 1250 } as const;

  it('suspends its ring, fails no request, and news of a former start changes nothing (R1, R2)', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5], maxTokens: 9 }).turn();
    const before = agent.state;
    agent.dispatch({ ...lost, incarnation: 99 });
    assert.equal(agent.state, before);
    agent.dispatch({ ...lost, incarnation: 1 });
    assert.deepEqual(agent.ends, []);
    submit(open(agent, 12), 13, { session: 2, prompt: [5], maxTokens: 9 });
    assert.equal(agent.replies.get(call(13))?.kind, 'submitted', 'new requests wait with the others');
    assert.equal(agent.frames.length, 0, 'nothing goes round');
  });

  it('is started again at the time of the retry, and the text goes on as if nothing had been (R3)', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5, 6], maxTokens: 9 }).turn();
    agent.turn();
    agent
      .dispatch({ ...lost, incarnation: 1 })
      .loseStages()
      .dispatch({ ...retry, attempt: 1 });
    assert.equal(agent.started.length, 1, 'a retry of another attempt is none');
    agent.dispatch(retry);
    stageUp(agent, 1);
    agent.turnAll();
    assert.deepEqual(agent.tokens, toyCompletion([5, 6], 9));
    const settled = agent.records.filter((record) => record.kind === 'request-settled');
    assert.equal(settled.length, 1);
    assert.deepEqual(
      settled[0]?.receipts.map(({ prefilled, decoded, recomputed }) => [prefilled, decoded, recomputed]),
      [[2, 8, 2]],
    );
  });

  it('that is not back at the deadline fails its requests by name, and is waited for no more (R4)', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5], maxTokens: 9 }).turn();
    agent.dispatch({ ...lost, incarnation: 1 });
    agent.dispatch({ kind: 'recovery-deadline', ring, load, suspension: 1, atMs: 61_000 });
    assert.equal(agent.ends[0]?.end.reason, 'ring-lost');
    assert.match(agent.ends[0].end.detail, /STAGE_LOST.*host alpha/);
    submit(agent, 12, { session: 1, prompt: [5], maxTokens: 9 });
    assert.equal(agent.refusal(12), 'STAGE_LOST');
  });

  it('is not started again while its ring is taken down', () => {
    const agent = new ToyAgent(2).dispatch(loadInput(planOver([alpha, alpha])));
    stageUp(agent, 0);
    stageUp(agent, 1);
    makeReady(agent).dispatch({ ...lost, incarnation: 1 });
    agent.dispatch({ kind: 'unload', call: call(12), ring, generation: right, digestMatches: false }).dispatch(retry);
    assert.equal(agent.started.length, 2);
    agent.dispatch({ kind: 'stage-stopped', ring, load, node: nodeIndex(1), incarnation: 2 });
    assert.deepEqual(agent.replies.get(call(12)), { kind: 'unloaded', stages: 2 });
    assert.equal(agent.state.rings.size, 0);
  });
});

describe('a ring whose head has not come up again', () => {
  /** Its agent restarted in the middle of a request. */
  function restarted(): ToyAgent {
    const former = open(readyAgent(), 10);
    submit(former, 11, { session: 1, prompt: [5], maxTokens: 9 }).turn();
    const recall = new HeadRecall({ session: 0, request: 0 });
    for (const record of former.records) recall.add(record);
    const agent = new ToyAgent().dispatch({ kind: 'restored', ...claim, memory: recall.memory });
    return agent.dispatch(loadInput(planOver([alpha]), { call: call(20), digestMatches: true }));
  }

  const whatBecame = ({ records }: ToyAgent) =>
    records.flatMap((record) =>
      record.kind === 'request-ended' || record.kind === 'request-settled' ? [[record.kind, record.request]] : [],
    );

  it('ends and settles its requests when it is unloaded (S3)', () => {
    const agent = restarted();
    agent.dispatch({ kind: 'unload', call: call(21), ring, generation: right, digestMatches: false });
    assert.deepEqual(whatBecame(agent), [
      ['request-ended', 1],
      ['request-settled', 1],
    ]);
  });

  it('fails them at the deadline, and settles them when it is back after all (R4, S3)', () => {
    const agent = restarted();
    agent.dispatch({ kind: 'recovery-deadline', ring, load, suspension: 2, atMs: 1e12 });
    assert.deepEqual(whatBecame(agent), [['request-ended', 1]]);
    stageUp(agent, 0);
    agent.turnAll();
    assert.deepEqual(whatBecame(agent), [
      ['request-ended', 1],
      ['request-settled', 1],
    ]);
  });
});

describe('a submit that the journal does not admit', () => {
  it('leaves nothing in the state that was before (J1)', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5, 6], maxTokens: 2 }).turnAll();
    const before = agent.state;
    submit(agent, 12, { session: 1, prompt: [7], maxTokens: 2 });
    agent.forget(before);
    submit(agent, 13, { session: 1, prompt: [8], maxTokens: 2 });
    assert.equal(agent.replies.get(call(13))?.kind, 'submitted');
  });
});

describe('a receipt of another generation', () => {
  it('stops its node at once, and settles nothing (G5)', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5], maxTokens: 1 });
    const ran = { prefilled: 1, decoded: 0, reused: 0, recomputed: 0, padding: 0, computeUs: 0 };
    const receipts = [{ node: nodeIndex(0), ...ran, sourceGeneration: wrong }];
    const end = { kind: 'end', session: sessionId(1), request: requestId(1), receipts, ran: null } as const;
    agent.dispatch({ kind: 'returned', ring, load, items: [end], slowest: noStep, atMs: 1 });
    assert.deepEqual(agent.stopped, [1]);
    assert.ok(!agent.records.some(({ kind }) => kind === 'request-settled'));
    assert.deepEqual(
      agent.records.findLast((record) => record.kind === 'ring-suspended')?.reason,
      'RECEIPT_GENERATION_MISMATCH, ring toy, node 0, host alpha',
    );
  });
});

describe('an unload', () => {
  it('ends requests, links and stages, is answered when nothing stands, and frees the name', () => {
    const agent = open(readyAgent(), 10);
    submit(agent, 11, { session: 1, prompt: [5], maxTokens: 9 }).turn();
    agent.dispatch({ kind: 'unload', call: call(12), ring, generation: right, digestMatches: false });
    assert.deepEqual(agent.stopped, [1]);
    agent.dispatch({ kind: 'stage-stopped', ring, load, node: nodeIndex(0), incarnation: 1 });
    assert.deepEqual(agent.replies.get(call(12)), { kind: 'unloaded', stages: 1 });
    assert.equal(agent.ends[0]?.end.reason, 'ring-lost');
    assert.equal(agent.state.rings.size, 0);
  });
});

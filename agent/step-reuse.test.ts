import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { sessionId } from '../protocol/ids.ts';
import { call, open, readyAgent, right, ring, submit, type ToyAgent } from '../test/simulation/toy-agent.ts';
import { toyCompletion } from '../test/simulation/toy-ring.ts';

const story = (length: number): number[] => Array.from({ length }, (_none, row) => 1 + row);

const close = (agent: ToyAgent, session: number): ToyAgent =>
  agent.dispatch({
    kind: 'close-session',
    call: call(900 + session),
    ring,
    generation: right,
    session: sessionId(session),
  });

interface Turn {
  readonly session: number;
  readonly prompt: readonly number[];
  readonly owner?: string | null;
  readonly maxTokens?: number;
}

/** Opens a session, asks in it, and hears it to its end. */
function asked(agent: ToyAgent, { session, prompt, owner = 'ann', maxTokens = 3 }: Turn): number[] {
  open(agent, 100 + session, owner);
  submit(agent, 200 + session, { session, prompt, maxTokens }).turnAll();
  return agent.records.flatMap((record) =>
    record.kind === 'token-emitted' && record.session === session ? [record.token] : [],
  );
}

/** The rows of a session's request, as its stages count them. */
function receiptOf(agent: ToyAgent, session: number): { readonly prefilled: number; readonly reused: number } {
  const settled = agent.records.find((record) => record.kind === 'request-settled' && record.session === session);
  assert.ok(settled?.kind === 'request-settled');
  const [{ prefilled, reused } = { prefilled: -1, reused: -1 }] = settled.receipts;
  return { prefilled, reused };
}

suite('a new session whose prompt begins like one whose KV is there', () => {
  test('runs what is new, and draws what it would have drawn', () => {
    const agent = readyAgent();
    asked(agent, { session: 1, prompt: story(30) });
    close(agent, 1).turnAll();
    assert.deepEqual(agent.toy.keptRows, [[0, 32]], 'but for the row of its last token, which never ran');
    const prompt = [...story(25), 60, 61, 62];
    assert.deepEqual(asked(agent, { session: 2, prompt }), toyCompletion(prompt, 3));
    assert.deepEqual(receiptOf(agent, 2), { prefilled: 3, reused: 25 });
    const [admitted] = agent.records.filter((record) => record.kind === 'request-admitted' && record.session === 2);
    assert.deepEqual(admitted?.kind === 'request-admitted' && admitted.adopted, [25]);
    close(agent, 2).turnAll();
    assert.equal(agent.toy.openLeases, 0);
  });

  test('goes on from its end; the row of its last token runs first', () => {
    const agent = readyAgent();
    const drawn = asked(agent, { session: 1, prompt: story(20) });
    close(agent, 1).turnAll();
    const prompt = [...story(20), ...drawn, 70];
    assert.deepEqual(asked(agent, { session: 2, prompt }), toyCompletion(prompt, 3));
    assert.deepEqual(receiptOf(agent, 2), { prefilled: 2, reused: 22 });
    assert.deepEqual(
      agent.toy.adoptions.map(({ takes }) => takes),
      [false],
      'there is room for both',
    );
    close(agent, 2).turnAll();
    assert.equal(agent.toy.keptRows.length, 1, 'the longer of the two');
  });

  test('runs all of it where the key is another, or none', () => {
    const agent = readyAgent();
    asked(agent, { session: 1, prompt: story(30) });
    close(agent, 1).turnAll();
    asked(agent, { session: 2, prompt: story(30), owner: 'bob' });
    asked(agent, { session: 3, prompt: story(30), owner: null });
    assert.deepEqual([receiptOf(agent, 2).reused, receiptOf(agent, 3).reused], [0, 0]);
    close(agent, 3).turnAll();
    assert.equal(agent.toy.keptRows.length, 1, 'what nobody may have is not kept');
  });

  test('takes the rows over where there is no room for both, and later rows push out what was kept', () => {
    const agent = readyAgent(1);
    asked(agent, { session: 1, prompt: story(40), maxTokens: 1 });
    close(agent, 1).turnAll();
    const prompt = [...story(40), 80];
    assert.deepEqual(asked(agent, { session: 2, prompt }), toyCompletion(prompt, 3));
    assert.deepEqual(
      agent.toy.adoptions.map(({ takes }) => takes),
      [true],
    );
    assert.deepEqual(agent.toy.keptRows, []);
    close(agent, 2).turnAll();
    assert.deepEqual(agent.toy.keptRows, [[0, 43]]);
    const other = story(40).map((token) => token + 50);
    assert.deepEqual(asked(agent, { session: 3, prompt: other, maxTokens: 1 }), toyCompletion(other, 1));
    assert.deepEqual(agent.toy.keptRows, [], '43 rows and 40 are more than the 64 cells of one session');
  });

  test('is kept by however its session ended, but for one that has nothing on the stages', () => {
    const agent = readyAgent();
    open(agent, 100, 'ann');
    submit(agent, 200, { session: 1, prompt: story(30), maxTokens: 20 }).turn();
    close(agent, 1).turnAll();
    assert.equal(agent.toy.openLeases, 0);
    assert.equal(agent.toy.keptRows.length, 1, 'in the middle of its text');
    open(agent, 101, 'ann');
    close(agent, 2).turnAll();
    assert.equal(agent.toy.openLeases, 0);
    assert.equal(agent.toy.keptRows.length, 1);
  });
});

/**
 * Seeded runs of the head's decisions: sessions come, ask, cancel and go in any order, frames finish early or late, and
 * draws come twice. Checked after each run: every text is the undisturbed one (E1), every request is settled once with
 * the rows it ran (S2, S3), and no lease is left.
 *
 * A failing seed is in the test's message; `P4_SEED=<seed> npm test -- simulation` runs it alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noStep } from '../../protocol/hop-frame.ts';
import { requestId, sessionId } from '../../protocol/ids.ts';
import { chooser } from '../fixture/chooser.ts';
import { call, load, open, readyAgent, right, ring, submit, type ToyAgent } from './toy-agent.ts';
import { toyCompletion } from './toy-ring.ts';

const seeds =
  process.env['P4_SEED'] === undefined
    ? Array.from({ length: 200 }, (_, seed) => seed)
    : [Number(process.env['P4_SEED'])];

class Run {
  readonly agent: ToyAgent = readyAgent(3);
  readonly choose: (below: number) => number;
  #nextCall = 100;
  #sessions: number[] = [];
  #opened = 0;

  constructor(seed: number) {
    this.choose = chooser(seed);
  }

  act(): void {
    const session = this.#sessions[this.choose(this.#sessions.length)];
    const action = this.choose(10);
    if (action < 6) this.#turn();
    else if (action < 7 || session === undefined) this.#open();
    else if (action < 9) this.#submit(session);
    else if (this.choose(2) === 0) this.#cancel(session);
    else this.close(session);
  }

  /** Ends every session and lets everything come round. */
  end(): void {
    for (const session of [...this.#sessions]) this.close(session);
    this.agent.turnAll();
  }

  close(session: number): void {
    this.#sessions = this.#sessions.filter((other) => other !== session);
    this.agent.dispatch({
      kind: 'close-session',
      call: call(this.#nextCall++),
      ring,
      generation: right,
      session: sessionId(session),
    });
  }

  #open(): void {
    open(this.agent, this.#nextCall);
    if (this.agent.replies.get(call(this.#nextCall++))?.kind === 'session-opened') this.#sessions.push(++this.#opened);
  }

  #submit(session: number): void {
    const prompt = Array.from({ length: 1 + this.choose(12) }, () => this.choose(97));
    submit(this.agent, this.#nextCall++, { session, prompt, maxTokens: 1 + this.choose(6) });
  }

  #cancel(session: number): void {
    const request = requestId(1 + this.choose(4));
    this.agent.dispatch({
      kind: 'cancel',
      call: call(this.#nextCall++),
      ring,
      generation: right,
      session: sessionId(session),
      request,
    });
  }

  /** One frame goes round; sometimes what came of it is told twice. */
  #turn(): void {
    const frame = this.agent.frames.shift();
    if (frame === undefined) return;
    const items = this.agent.toy.run(frame);
    const finished = (): unknown => this.agent.dispatch({ kind: 'frame-finished', ring, load });
    const returned = (): unknown =>
      this.agent.dispatch({ kind: 'returned', ring, load, items, slowest: noStep, atMs: 1 });
    if (this.choose(2) === 0) finished();
    returned();
    if (this.choose(3) === 0) returned();
    while (this.agent.state.rings.get(ring) !== undefined && this.#owesFinish()) finished();
  }

  /** Frames that the head counts as its stage's, beyond those that wait for their turn. */
  #owesFinish(): boolean {
    const state = this.agent.state.rings.get(ring);
    return state?.kind === 'live' && state.head !== null && state.head.framesInFlight > this.agent.frames.length;
  }
}

/** Every session's tokens against the undisturbed ring: prompts and draws in the order in which they were admitted. */
function checkTexts({ records }: ToyAgent, where: string): void {
  const histories = new Map<number, number[]>();
  for (const record of records) {
    if (record.kind === 'request-admitted') {
      histories.set(record.session, [...(histories.get(record.session) ?? []), ...record.prompt]);
    }
    if (record.kind !== 'token-emitted') continue;
    const history = histories.get(record.session) ?? [];
    assert.deepEqual([record.token], toyCompletion(history, 1), where);
    histories.set(record.session, [...history, record.token]);
  }
}

function checkSettlements({ records }: ToyAgent, where: string): void {
  const count = (kind: string, request: number): number =>
    records.filter((record) => record.kind === kind && 'request' in record && record.request === request).length;
  for (const record of records) {
    if (record.kind !== 'request-admitted') continue;
    assert.equal(count('request-ended', record.request), 1, where);
    assert.equal(count('request-settled', record.request), 1, where);
  }
  for (const record of records) {
    if (record.kind !== 'request-settled') continue;
    assert.equal(record.emitted, count('token-emitted', record.request), where);
    const [receipt] = record.receipts;
    // The last token of a request that ran to its end was drawn and not fed.
    assert.ok(receipt !== undefined && receipt.decoded <= Math.max(0, record.emitted), where);
  }
}

test('texts, settlements and leases hold in every seeded run', () => {
  for (const seed of seeds) {
    const run = new Run(seed);
    for (let action = 0; action < 300; action++) run.act();
    run.end();
    const where = `seed ${seed}`;
    checkTexts(run.agent, where);
    checkSettlements(run.agent, where);
    assert.equal(run.agent.toy.openLeases, 0, where);
  }
});

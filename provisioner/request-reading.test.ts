import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { GatheredPause, GatherEvent } from '../protocol/messages.ts';
import { beginReading, readingStep, type Reading, type ReadingAction, type ReadingInput } from './request-reading.ts';

const deadlineMs = 60_000;

const token = (index: number): GatherEvent => ({ event: 'token', token: { index, token: 7, text: 'a' } });
const end: GatherEvent = {
  event: 'end',
  end: { reason: 'length', text: '', promptTokens: 1, completionTokens: 2, detail: '' },
};
const lostStage: GatheredPause = { code: 'STAGE_LOST', text: 't', host: 'bee', node: '2', remainingMs: 60_000 };
const pausedBy = (change: Partial<GatheredPause> = {}): GatherEvent => ({
  event: 'paused',
  paused: { ...lostStage, ...change },
});
const resumed: GatherEvent = { event: 'resumed', resumed: {} };

/** A reader on a clock of its own. */
class Run {
  reading: Reading;
  atMs = 0;
  last: readonly ReadingAction[] = [];

  constructor(from = 0, waitsMs = deadlineMs) {
    this.reading = beginReading(from, waitsMs, 0);
  }

  /** @returns what it does, as short words */
  give(input: ReadingInput): readonly string[] {
    const { reading, actions } = readingStep(this.reading, input);
    this.reading = reading;
    this.last = actions;
    return actions.map(wordOf);
  }

  hear(event: GatherEvent): readonly string[] {
    return this.give({ kind: 'event', event, atMs: this.atMs });
  }

  fail(code: ErrorCode): readonly string[] {
    return this.give({ kind: 'failed', error: new P4Error(code), atMs: this.atMs });
  }

  connect(): readonly string[] {
    return this.give({ kind: 'connected', atMs: this.atMs });
  }

  /** Fails and waits as it is told until it gives up. @returns how long that took */
  untilGivenUp(): number {
    const sinceMs = this.atMs;
    for (let tries = 0; tries < 1000; tries += 1) {
      this.fail('AGENT_UNREACHABLE');
      const [action] = this.last.filter(({ kind }) => kind !== 'tell');
      if (action?.kind === 'fail') return this.atMs - sinceMs;
      assert.ok(action?.kind === 'redial' && action.afterMs > 0);
      this.atMs += action.afterMs;
    }
    assert.fail('it tries for ever');
  }
}

function wordOf(action: ReadingAction): string {
  switch (action.kind) {
    case 'tell':
      return action.news.kind === 'token' ? `token ${action.news.token.index}` : action.news.kind;
    case 'redial':
      return `redial ${action.afterMs}`;
    case 'finish':
      return 'finish';
    case 'fail':
      return action.failure.kind === 'refused' ? action.failure.error.code : 'cut-off';
  }
}

describe('a reader', () => {
  test('tells every token from its first one on, in order, then the end', () => {
    const run = new Run(34);
    assert.deepEqual(run.hear(token(34)), ['token 34']);
    assert.deepEqual(run.hear(token(35)), ['token 35']);
    assert.deepEqual(run.hear(end), ['finish']);
  });

  test('takes no token twice, and none out of its turn', () => {
    for (const index of [0, 1, 3]) {
      const run = new Run();
      run.hear(token(0));
      run.hear(token(1));
      assert.deepEqual(run.hear(token(index)), ['RPC_FAILED'], `token ${index} after token 1`);
      assert.equal(run.reading.next, 2);
    }
  });

  test('tells each loss of the ring once, and its end', () => {
    const run = new Run();
    assert.deepEqual(run.hear(pausedBy()), ['paused']);
    assert.deepEqual(run.hear(pausedBy({ remainingMs: 50_000 })), [], 'the same loss, still');
    assert.deepEqual(run.hear(resumed), ['resumed']);
    assert.deepEqual(run.hear(resumed), []);
    assert.deepEqual(run.hear(pausedBy()), ['paused'], 'the stage is lost again');
    assert.deepEqual(run.hear(pausedBy({ node: '3', host: 'cat' })), ['paused'], 'another one is lost too');
  });

  test('says until when the ring waits, on its own clock', () => {
    const run = new Run();
    run.atMs = 1_000;
    run.hear(pausedBy({ remainingMs: 5_000 }));
    const [action] = run.last;
    assert.ok(action?.kind === 'tell' && action.news.kind === 'paused' && action.news.untilMs === 6_000);
  });
});

describe('a connection that breaks', () => {
  test('is dialled again, ever later, and reading goes on where it was', () => {
    const run = new Run();
    run.hear(token(0));
    assert.deepEqual(run.fail('AGENT_UNREACHABLE'), ['disconnected', `redial ${limits.recoveryRetryMs}`]);
    run.atMs += limits.recoveryRetryMs;
    assert.deepEqual(run.fail('AGENT_UNREACHABLE'), [`redial ${2 * limits.recoveryRetryMs}`], 'told once');
    run.atMs += 2 * limits.recoveryRetryMs;
    assert.deepEqual(run.connect(), ['reconnected']);
    assert.deepEqual(run.hear(token(1)), ['token 1']);
    assert.equal(run.reading.next, 2);
  });

  test('may be any that passes by itself; what an agent refuses for good ends the reading at once', () => {
    for (const code of [
      'AGENT_STOPPING',
      'RPC_TIMED_OUT',
      'CANCELLED',
      'RING_EMPTY',
      'JOURNAL_WRITE_FAILED',
    ] as const) {
      assert.deepEqual(new Run().fail(code).slice(0, 1), ['disconnected'], code);
    }
    for (const code of [
      ...(['GENERATION_MISMATCH', 'REQUEST_UNKNOWN', 'REQUEST_EXPIRED', 'RING_UNKNOWN'] as const),
      ...(['RING_UNLOADED', 'CERTIFICATE_REFUSED', 'ROLE_FORBIDDEN', 'AGENT_BUG'] as const),
    ]) {
      assert.deepEqual(new Run().fail(code), [code]);
    }
  });

  test('is given up when the deadline has passed without it, not before and not later', () => {
    const run = new Run();
    run.hear(token(0));
    assert.equal(run.untilGivenUp(), deadlineMs);
    const [action] = run.last;
    assert.ok(action?.kind === 'fail' && action.failure.kind === 'cut-off');
    assert.equal(action.failure.downMs, deadlineMs);
    assert.ok(action.failure.tries > 10);
  });

  test('has its whole deadline anew once something came through, however often it breaks', () => {
    const run = new Run();
    for (let index = 0; index < 10; index += 1) {
      run.fail('AGENT_UNREACHABLE');
      run.atMs += deadlineMs - 1;
      assert.deepEqual(run.fail('AGENT_UNREACHABLE'), ['redial 1']);
      assert.deepEqual(run.hear(token(index)), ['reconnected', `token ${index}`]);
    }
  });

  test('that comes back only to break at once is still the same loss', () => {
    const run = new Run();
    run.fail('AGENT_UNREACHABLE');
    while (run.atMs < deadlineMs) {
      run.atMs += 1_000;
      run.connect();
      run.fail('RPC_FAILED');
    }
    assert.deepEqual(run.fail('RPC_FAILED'), ['cut-off']);
  });

  test('that stood for a while is another loss, although nothing came through', () => {
    const run = new Run();
    run.fail('AGENT_UNREACHABLE');
    run.atMs += deadlineMs - 1;
    run.connect();
    run.atMs += limits.recoveryRetryMostMs;
    assert.deepEqual(run.fail('AGENT_UNREACHABLE'), ['disconnected', `redial ${limits.recoveryRetryMs}`]);
  });

  test('does not have a loss of the ring told twice, nor a later one left out', () => {
    const run = new Run();
    run.hear(pausedBy());
    run.fail('AGENT_UNREACHABLE');
    run.connect();
    assert.deepEqual(run.hear(pausedBy()), [], 'it is still lost');
    run.fail('AGENT_UNREACHABLE');
    run.connect();
    assert.deepEqual(run.hear(token(0)), ['token 0'], 'its end was missed');
    assert.deepEqual(run.hear(pausedBy()), ['paused'], 'lost again');
  });

  test('fails at once, with its own error, where nobody wants to wait', () => {
    assert.deepEqual(new Run(0, 0).fail('AGENT_UNREACHABLE'), ['AGENT_UNREACHABLE']);
  });
});

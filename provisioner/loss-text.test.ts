import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { lossEvent, lossLine, type LossNews } from './loss-text.ts';

const until = new Date(2026, 4, 3, 14, 3, 20);
const clock = (): number => until.getTime();
const pause = { code: 'STAGE_LOST', text: 'exit SIGKILL', host: 'bee', node: '2', remainingMs: 1 };
const paused = (change: Partial<typeof pause> = {}): LossNews => ({
  kind: 'paused',
  pause: { ...pause, ...change },
  untilMs: 5,
});

test('a loss is told by stage, host, reason and the time it is waited for', () => {
  assert.equal(
    lossLine(paused(), clock),
    'stage 2 on host bee is lost (STAGE_LOST: exit SIGKILL): waiting until 14:03:20',
  );
  const said = paused({ text: 'STAGE_LOST: it has ended' });
  assert.match(lossLine(said, clock), /\(STAGE_LOST: it has ended\)/, 'the code stands once');
  assert.match(lossLine(paused({ node: '' }), clock), /^the agent on host bee is lost /);
  assert.match(lossLine(paused({ node: '', host: '' }), clock), /^a part of the ring is lost /);
  assert.match(lossLine(paused({ text: 'a\u001b[2Jb' }), clock), /: a \[2Jb\)/, 'no text moves the cursor');
  assert.equal(lossLine({ kind: 'resumed' }, clock), 'going on');
});

test('a broken connection is told by host and reason', () => {
  const error = new P4Error('AGENT_UNREACHABLE', { host: 'ant', why: 'ECONNREFUSED' });
  assert.equal(
    lossLine({ kind: 'disconnected', error, untilMs: 5 }, clock),
    "the connection to the head's agent on host ant is lost (AGENT_UNREACHABLE, ECONNREFUSED): trying again until 14:03:20",
  );
  const headless = new P4Error('STAGE_LOST', { node: 0, host: 'ant' });
  assert.equal(
    lossLine({ kind: 'disconnected', error: headless, untilMs: 5 }, clock),
    "the ring's head on host ant is lost (STAGE_LOST): trying again until 14:03:20",
  );
});

test('programs get the same as events', () => {
  assert.deepEqual(lossEvent(paused(), clock), {
    ...{ event: 'paused', code: 'STAGE_LOST', text: 'exit SIGKILL', host: 'bee', node: 2 },
    until: until.toISOString(),
  });
  assert.deepEqual(lossEvent({ kind: 'reconnected' }, clock), { event: 'reconnected' });
});

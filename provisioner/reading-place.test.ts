import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { isLeftBehind, ReadingPlace } from './reading-place.ts';

const typed = { planFile: "the plan's.yaml", state: undefined };
const token = (index: number) => ({ kind: 'token', token: { index, token: 5, text: 'a' } }) as const;

test('who is cut off is told the command that goes on with the next token', () => {
  const place = new ReadingPlace(typed, null);
  const way = () => place.way;
  assert.equal(way(), null, 'there is no request yet');
  place.hear({ kind: 'submitted', session: 1, request: 12, promptTokens: 3, contextTokens: 8 });
  assert.equal(way()?.command, `npm run infer -- 'the plan'\\''s.yaml' --request 12 --from 0`);
  place.hear(token(0));
  place.hear(token(1));
  place.hear({ kind: 'reconnected' });
  assert.deepEqual([way()?.request, way()?.next], [12, 2]);
});

test('a reader of an earlier request goes on from where it began, with the state folder it was given', () => {
  const place = new ReadingPlace({ planFile: 'plan.yaml', state: '/srv/p4' }, { request: 12, from: 34 });
  assert.equal(place.way?.command, 'npm run infer -- plan.yaml --request 12 --from 34 --state /srv/p4');
});

test('only a request that may still run is gone on with', () => {
  assert.ok(isLeftBehind(new P4Error('REQUEST_CUT_OFF'), 'new'));
  assert.ok(isLeftBehind(new P4Error('CANCELLED'), 'earlier'), 'a reader that leaves changes nothing');
  assert.ok(!isLeftBehind(new P4Error('CANCELLED'), 'new'), 'it was cancelled');
  assert.ok(!isLeftBehind(new P4Error('RING_LOST'), 'new'), 'it has failed');
});

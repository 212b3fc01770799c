import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { requestId, sessionId, slotIndex, tokenId } from '../../protocol/ids.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import { load } from '../../test/simulation/toy-agent.ts';
import type { JournalRecord, RequestEnded } from '../records.ts';
import { marksOf, marksOfRuns, runsOf } from './head-state.ts';
import { HeadRecall } from './memory.ts';

const of = { load, session: sessionId(3), request: requestId(5) };
const opened: JournalRecord = { kind: 'session-opened', load, session: of.session, slot: slotIndex(1) };
const admitted: JournalRecord = {
  ...{ kind: 'request-admitted', ...of, prompt: [7, 8, 9].map(tokenId) },
  ...{ sampling: defaultSampling, stopStrings: [], maxTokens: 9, ignoreEnd: false },
};
const token = (index: number, alone: boolean): JournalRecord => ({
  ...{ kind: 'token-emitted', ...of, index, token: tokenId(40 + index), alone },
});
const ended = (held: Pick<RequestEnded, 'heldTokens' | 'heldRows' | 'alone'>): JournalRecord => ({
  ...{ kind: 'request-ended', ...of, reason: 'cancelled', detail: '', promptTokens: 3, reused: 0, ...held },
});

function recalled(...records: readonly JournalRecord[]): HeadRecall['memory'] {
  const recall = new HeadRecall({ session: 0, request: 0 });
  for (const record of records) recall.add(record);
  return recall.memory;
}

suite('what the journal says of a session', () => {
  test('is its tokens, the rows that drew them, and how those ran (R3)', () => {
    const { sessions, requests } = recalled(opened, admitted, token(0, false), token(1, true));
    const session = sessions.get(of.session);
    assert.deepEqual(session?.history.tokens, [7, 8, 9, 40, 41]);
    assert.deepEqual(session.rows.alone, [false, false, false, true]);
    assert.equal(session.sentRows, 0, 'no row is on any stage');
    assert.equal(requests.get(of.request)?.kind, 'running');
  });

  test('has rows that its first request adopted, each as it ran for the session that left it (R3)', () => {
    const marks = [false, false, true, false];
    const { sessions, requests } = recalled(opened, {
      ...admitted,
      prompt: [7, 8, 9, 10, 11].map(tokenId),
      adopted: runsOf(marksOf(marks)),
    });
    const session = sessions.get(of.session);
    assert.deepEqual(session?.rows.alone, marks);
    assert.equal(session.sentRows, 0, 'no row is on any stage');
    const request = requests.get(of.request);
    assert.deepEqual(request?.kind === 'running' && request.began, { tokens: 0, rows: 4 });
  });

  test('knows how the last row ran that drew nothing any more: its request was cancelled (R3)', () => {
    const cancelled = ended({ heldTokens: 5, heldRows: 5, alone: true });
    const { sessions } = recalled(opened, admitted, token(0, false), token(1, true), cancelled);
    assert.deepEqual(sessions.get(of.session)?.rows.alone, [false, false, false, true, true]);
    assert.equal(sessions.get(of.session)?.request, null);
  });

  test('is cut back where its request was', () => {
    const { sessions } = recalled(
      opened,
      admitted,
      token(0, false),
      ended({ heldTokens: 0, heldRows: 0, alone: false }),
    );
    assert.deepEqual(sessions.get(of.session)?.history.tokens, []);
    assert.deepEqual(sessions.get(of.session)?.rows.alone, []);
  });

  test('has no request that runs where only its settlement is left: its end was lost to damage (J6, S3)', () => {
    const settled: JournalRecord = { kind: 'request-settled', ...of, receipts: [], emitted: 1 };
    const { sessions, requests, finished } = recalled(opened, admitted, token(0, false), settled);
    const request = requests.get(of.request);
    assert.equal(request?.kind === 'settled' && request.reason, 'journal-failed');
    assert.equal(sessions.get(of.session)?.request, null);
    assert.equal(finished, 1);
  });

  test('uses no id twice, those whose records are gone with them (E1)', () => {
    const { nextSession, nextRequest } = recalled(opened, admitted);
    assert.deepEqual([nextSession, nextRequest], [4, 6]);
    const { memory } = new HeadRecall({ session: 8, request: 20 });
    assert.deepEqual([memory.nextSession, memory.nextRequest], [9, 21]);
  });
});

test('marks of rows are what they were when they are read from the lengths of their stretches', () => {
  const cases = [[], [false], [true], [true, true, false, true], [false, false, true, true, true, false]];
  const lengths = cases.map((alone) => runsOf(marksOf(alone)));
  assert.deepEqual(lengths, [[0], [1], [0, 1], [0, 2, 1, 1], [2, 3, 1]]);
  assert.deepEqual(
    lengths.map((runs) => marksOfRuns(runs).alone),
    cases,
  );
});

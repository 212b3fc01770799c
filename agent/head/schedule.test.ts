import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { HopItem, RowsItem } from '../../protocol/hop-items.ts';
import { requestId, sessionId, slotIndex, tokenId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import { firstTurns, historyOf, marksOf, type HeadState, type SessionState } from './head-state.ts';
import { IdMap } from './id-map.ts';
import { noneKept } from './kept-prefixes.ts';
import { observed, unknownPace, type Pace } from './pace.ts';
import { schedule, type FrameDraft } from './schedule.ts';
import { emptyAssembly } from './text-assembly.ts';

/** Rows cost next to nothing beside reading the weights. */
const pace: Pace = [
  { rows: 1, us: 10_000 },
  { rows: 8, us: 10_700 },
  { rows: 63, us: 16_200 },
].reduce(observed, unknownPace);

interface Session {
  readonly tokens: number;
  readonly sentRows: number;
  /** Rows that ran before a loss, in company; as many as are sent if absent. */
  readonly ranRows?: number;
}

/** Sessions 1, 2, … with a running request each, whose rows beyond `sentRows` wait. */
function headWith(sessions: readonly Session[], more: Partial<HeadState> = {}): HeadState {
  const states = sessions.map(({ tokens, sentRows, ranRows = sentRows }, index): SessionState => {
    return {
      id: sessionId(index + 1),
      slot: slotIndex(index),
      owner: null,
      ending: null,
      history: historyOf(Array.from({ length: tokens }, (_, token) => tokenId(token))),
      rows: marksOf(Array<boolean>(ranRows).fill(false)),
      sentRows,
      request: requestId(index + 1),
    };
  });
  const requests = states.map(({ id, history, sentRows }) => ({
    kind: 'running' as const,
    ...{ id: requestId(id), session: id, promptTokens: history.length, emitted: sentRows === 0 ? 0 : 1 },
    ...{ sampling: defaultSampling, stopStrings: [], maxTokens: 100, ignoreEnd: true, assembly: emptyAssembly },
    ...{ began: { tokens: 0, rows: 0 }, sampledBy: null, fedAgain: false },
  }));
  return {
    ...{ contextTokens: 4096, decode: 'fast', slots: states.map(({ id }) => id), queue: [], kept: noneKept(0) },
    vocabulary: { size: 8, piece: () => new Uint8Array(0), endsGeneration: () => false },
    ...{ nextSession: sessionId(99), nextRequest: requestId(99) },
    sessions: IdMap.of(states.map((state) => [state.id, state])),
    requests: IdMap.of(requests.map((request) => [request.id, request])),
    ...{ outbox: [], framesInFlight: 0, framesSent: 0, stages: 2, turns: firstTurns, pace, finished: 0, emitted: 0 },
    ...more,
  };
}

const decoding: Session = { tokens: 10, sentRows: 9 };
const prompt: Session = { tokens: 1000, sentRows: 0 };

const isRows = (item: HopItem): item is RowsItem => item.kind === 'rows';
/** Sessions of each frame, with the rows that they feed. */
const rowsOf = (frames: readonly FrameDraft[]): (readonly [number, number])[][] =>
  frames.map(({ items }) => items.filter(isRows).map(({ session, rowCount }) => [session, rowCount] as const));

/** The head stage has finished a frame. */
const finished = (head: HeadState): HeadState => ({ ...head, framesInFlight: head.framesInFlight - 1 });

/** The tokens of these sessions are home. */
function drawn(head: HeadState, ...ids: readonly number[]): HeadState {
  const requests = new Map(head.requests);
  const sessions = new Map(head.sessions);
  for (const id of ids) {
    const request = requests.get(requestId(id));
    const session = sessions.get(sessionId(id));
    assert.ok(request?.kind === 'running' && session !== undefined && request.sampledBy !== null);
    requests.set(request.id, { ...request, emitted: request.emitted + 1, sampledBy: null });
    const history = historyOf([...session.history.tokens, tokenId(0)]);
    sessions.set(session.id, { ...session, history });
  }
  return { ...head, requests: IdMap.of(requests), sessions: IdMap.of(sessions) };
}

suite('the schedule', () => {
  test('sessions that decode go in as many groups as there are stages', () => {
    const { frames, head } = schedule(headWith([decoding, decoding, decoding, decoding]));
    assert.deepEqual(rowsOf(frames), [
      [
        [1, 1],
        [2, 1],
      ],
      [
        [3, 1],
        [4, 1],
      ],
    ]);
    assert.deepEqual(schedule(head).frames, []);
  });

  test('groups are alike in size', () => {
    const { frames } = schedule(headWith(Array<Session>(5).fill(decoding), { stages: 4 }));
    assert.deepEqual(
      rowsOf(frames).map((rows) => rows.length),
      [2, 1],
    );
  });

  test('groups that have come apart are put together again', () => {
    let { head } = schedule(headWith([decoding, decoding, decoding, decoding]));
    head = finished(finished(head));
    // 1 comes home without 2: two groups are still on their way.
    let step = schedule(drawn(head, 1));
    assert.deepEqual(step.frames, []);
    step = schedule(drawn(step.head, 3, 4));
    assert.deepEqual(rowsOf(step.frames), [
      [
        [1, 1],
        [3, 1],
      ],
    ]);
  });

  test('no session starves: whoever waits goes before those that have just gone', () => {
    let head = headWith(Array<Session>(6).fill(decoding), { stages: 1, pace: dearPairs });
    const order: number[] = [];
    for (let turn = 0; turn < 12; turn += 1) {
      const step = schedule(head);
      const gone = rowsOf(step.frames).flat();
      order.push(...gone.map(([session]) => session));
      head = drawn({ ...step.head, framesInFlight: 0 }, ...gone.map(([session]) => session));
    }
    for (let from = 0; from + 6 <= order.length; from += 6) {
      assert.deepEqual(order.slice(from, from + 6).toSorted(), [1, 2, 3, 4, 5, 6]);
    }
  });

  test('a prompt alone goes in whole chunks, one computed and one that waits', () => {
    const { frames } = schedule(headWith([prompt]));
    assert.deepEqual(rowsOf(frames), [[[1, limits.cpuDecodeRows]], [[1, limits.cpuDecodeRows]]]);
    assert.ok(frames.every(({ items }) => items.every((item) => !isRows(item) || !item.samples)));
  });

  test('short prompts share a chunk', () => {
    const short: Session = { tokens: 20, sentRows: 0 };
    const { frames } = schedule(headWith([short, short, short, short]));
    assert.deepEqual(rowsOf(frames), [
      [
        [1, 20],
        [2, 20],
        [3, 20],
        [4, 3],
      ],
    ]);
  });

  test('a chunk takes turns with sessions that decode', () => {
    let step = schedule(headWith([decoding, decoding, prompt]));
    // 1, then 2 with as many rows of the prompt as a group may wait for.
    const [first, second] = rowsOf(step.frames);
    assert.deepEqual(first, [[1, 1]]);
    assert.deepEqual(second?.[0], [2, 1]);
    const riding = second[1];
    assert.ok(riding?.[0] === 3 && riding[1] > 1, JSON.stringify(second));
    step = schedule(drawn(finished(step.head), 1));
    assert.deepEqual(rowsOf(step.frames), [[[1, 1]]]);
  });

  test('where a row more is dear, the chunk goes by itself, once when every group has gone', () => {
    let head = headWith([decoding, decoding, decoding, prompt], { pace: dearPairs });
    const order: number[] = [];
    for (let turn = 0; turn < 10; turn += 1) {
      const step = schedule(head);
      const gone = rowsOf(step.frames).map((rows) => rows.map(([session]) => session));
      assert.ok(gone.every((sessions) => !sessions.includes(4) || sessions.length === 1));
      order.push(...gone.flat());
      head = drawn({ ...step.head, framesInFlight: 0 }, ...gone.flat().filter((session) => session !== 4));
    }
    const rounds = order.join(' ').split(' 4 ').slice(0, -1);
    assert.ok(rounds.length > 3, order.join(' '));
    for (const round of rounds) {
      const gone = round.split(' ');
      assert.deepEqual([...new Set(gone)].toSorted(), ['1', '2', '3'], round);
      assert.ok(gone.length <= 4, `two groups of at most two: ${round}`);
    }
  });

  test('rows that are decoded alone share a frame, and bear the mark in which they run again (R3)', () => {
    const { frames, head } = schedule(headWith([decoding, decoding, decoding], { pace: dearPairs }));
    assert.deepEqual(rowsOf(frames), [
      [
        [1, 1],
        [2, 1],
      ],
      [[3, 1]],
    ]);
    assert.ok(frames.every(({ items }) => items.filter(isRows).every(({ alone }) => alone)));
    for (const { rows } of head.sessions.values()) assert.equal(rows.alone[9], true);
    const exact = schedule(headWith([decoding, decoding], { pace: dearPairs, decode: 'exact' }));
    assert.deepEqual(rowsOf(exact.frames), [[[1, 1]], [[2, 1]]]);
    assert.ok(exact.frames.every(({ items }) => items.filter(isRows).every(({ alone }) => !alone)));
  });

  test('a row that was lost, and had others beside it, is not alone when it runs again (R3)', () => {
    const { frames } = schedule(headWith([{ tokens: 10, sentRows: 9, ranRows: 10 }]));
    assert.deepEqual(rowsOf(frames), [[[1, 1]]]);
    assert.ok(frames.every(({ items }) => items.filter(isRows).every(({ alone }) => !alone)));
  });

  test('a chunk alone does not queue up before a session that is about to come home', () => {
    let step = schedule(headWith([decoding, prompt], { pace: dearPairs }));
    assert.deepEqual(rowsOf(step.frames), [[[1, 1]]]);
    step = schedule(finished(step.head));
    assert.deepEqual(rowsOf(step.frames), [[[2, 3]]]);
    assert.deepEqual(schedule(step.head).frames, []);
    step = schedule(drawn(step.head, 1));
    assert.deepEqual(rowsOf(step.frames), [[[1, 1]]]);
  });
});

/** A row alone is far cheaper than its share of two. */
const dearPairs: Pace = [
  { rows: 1, us: 6000 },
  { rows: 2, us: 18_000 },
  { rows: 4, us: 25_000 },
  { rows: 8, us: 50_000 },
].reduce(observed, unknownPace);

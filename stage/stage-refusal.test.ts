import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import type { Frame } from '../protocol/hop-frame.ts';
import type { HopItem } from '../protocol/hop-items.ts';
import { generation, nodeIndex, requestId, sessionId, slotIndex, tokenId } from '../protocol/ids.ts';
import type { Sampling } from '../protocol/sampling.ts';
import { greedy, headFrame, itemsOf, TestSession, testStages, withHead, withStages } from './core-fixture.ts';
import { openRing, storiesPath, withEngine } from './engine-fixture.ts';

const prompt = [0, 379, 395, 264, 364, 12];

const thrownBy = (code: ErrorCode) => (error: unknown) => error instanceof P4Error && error.code === code;

test('a full KV cache fails the requests of that decode, drops their rows and leaves the others alone', async () => {
  // 256 cells, fewer than the sessions may ask for together.
  const ring = await openRing([4], { path: storiesPath, contextTokens: 255 });
  try {
    const [head] = testStages(ring.engines, { contextTokens: 512 });
    assert.ok(head);
    const [first, second] = [new TestSession(0), new TestSession(1)];
    const chunk = Array<number>(63).fill(379);
    head.run(headFrame([first.open, first.begin()]));
    for (let index = 0; index < 4; index++) head.run(headFrame([first.prefill(63, false)], chunk));

    const refused = head.run(
      headFrame([second.open, second.begin(), second.prefill(63, false)], chunk),
      headFrame([second.prefill(63, true)], chunk),
    );
    assert.deepEqual(
      itemsOf(refused).map((item) => (item.kind === 'failed' ? [item.request, item.why, item.node] : item.kind)),
      ['open', 'begin', [second.request, 'kv-cache-full', 0]],
    );
    assert.deepEqual(
      refused.map(({ rows, completes }) => [rows, completes]),
      [
        [0, 1],
        [0, 1],
      ],
    );
    const [end] = itemsOf(head.run(headFrame([second.end])));
    assert.ok(end?.kind === 'end');
    assert.equal(end.receipts[0]?.prefilled, 0);

    const [goes] = head.run(headFrame([first.prefill(1, false)], [12]));
    assert.equal(goes?.rows, 1);
    assert.equal(head.engine.nextPosition(0), 253);
    head.run(headFrame([second.close, new TestSession(1).open]));
  } finally {
    ring.close();
  }
});

test('a grammar or option that cannot be used fails its request at the tail, and no row of it runs there', () => {
  const cases: readonly (readonly [Partial<Sampling>, string])[] = [
    [{ grammar: 'root ::= missing' }, 'grammar-invalid'],
    [{ logitBias: [[tokenId(70_000), 1]] }, 'sampling-invalid'],
  ];
  withHead((head) => {
    for (const [change, why] of cases) {
      const session = new TestSession(0);
      const begin = session.begin({ ...greedy, ...change });
      const out = itemsOf(head.run(headFrame([session.open, begin, session.prefill(6, true), session.end], prompt)));
      assert.deepEqual(
        out.map((item) => (item.kind === 'failed' ? item.why : item.kind)),
        ['open', 'begin', why, 'end'],
      );
      assert.equal(head.counts().decodes, 0);
      head.run(headFrame([session.close]));
    }
  });
});

test('a refused frame changes nothing', async () => {
  await withStages([4], ([head, tail]) => {
    assert.ok(head && tail);
    const session = new TestSession(0);
    const items = [session.open, session.begin(), session.prefill(6, true)];
    const refused: readonly (readonly [ErrorCode, () => Frame])[] = [
      ['GENERATION_MISMATCH', () => headFrame(items, prompt, { generation: generation('17592186044418') })],
      ['FRAME_INVALID', () => headFrame(items, prompt, { destination: nodeIndex(1) })],
      ['FRAME_INVALID', () => headFrame(items, [...prompt.slice(1), 70_000])],
      ['FRAME_INVALID', () => headFrame(items, prompt, { hidden: new Float32Array(6 * 8) })],
      ['FRAME_INVALID', () => headFrame([new TestSession(0).prefill(64, false)], Array<number>(64).fill(1))],
      [
        'FRAME_INVALID',
        () =>
          headFrame([
            { kind: 'token', session: session.session, request: session.request, step: 0, token: tokenId(1) },
          ]),
      ],
    ];
    for (const [code, frame] of refused)
      assert.throws(() => {
        head.core.accept(frame());
      }, thrownBy(code));
    assert.throws(() => {
      tail.core.accept(headFrame(items, prompt, { destination: nodeIndex(1) }));
    }, thrownBy('FRAME_INVALID'));
    assert.equal(head.core.waitingFrames, 0);
    assert.equal(head.counts().decodes, 0);
    const [out] = head.run(headFrame(items, prompt));
    assert.equal(out?.rows, 6);
  });
});

test('an agent that contradicts itself ends the stage', () => {
  const other = { session: sessionId(99), slot: slotIndex(0), request: requestId(9900) };
  const cases: Readonly<Record<string, (session: TestSession) => readonly HopItem[]>> = {
    'a slot that is taken': (session) => [session.open, { kind: 'open', ...other }],
    'a slot that is not there': () => [{ kind: 'open', session: other.session, slot: slotIndex(4) }],
    'rows before begin': (session) => [session.open, session.prefill(1, false)],
    'rows of a slot that another session holds': (session) => [
      session.open,
      session.begin(),
      { ...session.prefill(1, false), session: other.session },
    ],
    'rows at another position': (session) => [
      session.open,
      session.begin(),
      { ...session.prefill(1, false), firstPosition: 1 },
    ],
    'a second begin': (session) => {
      const begin = session.begin();
      return [session.open, begin, begin];
    },
    'an end without begin': (session) => [session.open, session.end],
    'a close while the request goes on': (session) => [session.open, session.begin(), session.close],
    'a truncate without lease': (session) => [session.truncate(0)],
  };
  withEngine({}, (engine) => {
    for (const [name, items] of Object.entries(cases)) {
      const [head] = testStages([engine]);
      assert.ok(head);
      const made = items(new TestSession(0));
      const rows = made.reduce((sum, item) => sum + (item.kind === 'rows' ? item.rowCount : 0), 0);
      assert.throws(() => head.run(headFrame(made, Array<number>(rows).fill(0))), thrownBy('STAGE_PROTOCOL'), name);
      head.core.reset();
    }
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import type { HopItem, Receipt } from '../protocol/hop-items.ts';
import { tokenId } from '../protocol/ids.ts';
import type { Sampling } from '../protocol/sampling.ts';
import { greedy, headFrame, itemsOf, roundRing, TestSession, withHead, withStages } from './core-fixture.ts';
import { talk, talkTurns, tell, type Said, type TalkPlan } from './talk-fixture.ts';

const prompt = [0, 379, 395, 264, 364, 12];

interface Heard extends Said {
  /** The bits of what every token was drawn from. */
  readonly logits: readonly Buffer[];
  readonly paddingRows: number;
}

async function listen(cuts: readonly number[], decode: 'fast' | 'exact', plans: readonly TalkPlan[]): Promise<Heard[]> {
  const found: Heard[] = [];
  let logits: Buffer[] = [];
  const onDraw = (row: Float32Array): void => {
    logits.push(Buffer.from(new Uint8Array(row.buffer, row.byteOffset, row.byteLength)));
  };
  for (const plan of plans) {
    logits = [];
    await withStages(
      cuts,
      (stages) => {
        const said = tell(stages, talk(plan));
        found.push({ ...said, logits, paddingRows: stages[0]?.counts().paddingRows ?? -1 });
      },
      { decode, onDraw },
    );
  }
  return found;
}

const firstDifference = (one: Heard, other: Heard): number =>
  one.logits.findIndex((row, index) => other.logits[index]?.equals(row) !== true);

const rowsOf = ({ receipts }: Said): number[][] =>
  receipts.map(({ node, prefilled, decoded, reused }) => [node, prefilled, decoded, reused]);

for (const decode of ['fast', 'exact'] as const) {
  for (const cuts of [[], [2, 5]]) {
    const shape = `${String(cuts.length + 1)} stage(s), decode: ${decode}`;
    test(`R3: after a loss a talk goes on with the same bits, tokens and receipts (${shape})`, async () => {
      const losses = [0, 1, 4, 11, talkTurns - 1];
      const plans = [{ lossAfter: null }, ...losses.map((lossAfter) => ({ lossAfter }))];
      const [undisturbed, ...others] = await listen(cuts, decode, plans);
      assert.ok(undisturbed !== undefined && undisturbed.logits.length > 20);
      assert.ok(undisturbed.receipts.every(({ recomputed }) => recomputed === 0));
      for (const [index, other] of others.entries()) {
        const when = `lost after ${String(losses[index])} turns`;
        assert.equal(firstDifference(undisturbed, other), -1, when);
        assert.equal(other.logits.length, undisturbed.logits.length);
        assert.deepEqual(other.tokens, undisturbed.tokens, when);
        assert.deepEqual(rowsOf(other), rowsOf(undisturbed), when);
        assert.ok(other.receipts.every(({ recomputed }) => recomputed > 0));
      }
    });
  }
}

test('R3: rows that are recomputed in another shape class give other bits', async () => {
  const plans = [{ lossAfter: null }, { lossAfter: 14 }, { lossAfter: 14, forgetsShapes: true }];
  const [undisturbed, rebuilt, careless] = await listen([], 'fast', plans);
  assert.ok(undisturbed && rebuilt && careless);
  assert.equal(firstDifference(undisturbed, rebuilt), -1);
  assert.notEqual(firstDifference(undisturbed, careless), -1);
});

test('an item that is alone is decoded by itself, and goes on with its frame', async () => {
  await withStages([4], (stages) => {
    const sessions = [0, 1, 2].map((number) => new TestSession(number));
    const opening = sessions.flatMap((session) => [session.open, session.begin()]);
    roundRing(stages, headFrame(opening));
    const decodes = (): number[] => stages.map(({ counts }) => counts().decodes);
    const before = decodes();
    const [one, two, three] = sessions;
    assert.ok(one && two && three);
    const frames = [
      headFrame([one.recompute(2, false), two.recompute(2, false), one.recompute(1, true)], [0, 1, 2, 3, 4]),
      headFrame([two.recompute(1, true), three.recompute(2, false)], [5, 6, 7]),
      headFrame([one.recompute(2, false)], [8, 9]),
    ];
    const [head, tail] = stages;
    assert.ok(head && tail);
    const passed = head.run(...frames);
    assert.deepEqual(
      passed.map(({ rows, completes }) => [rows, completes]),
      [
        [5, 1],
        [3, 1],
        [2, 1],
      ],
    );
    tail.run(...passed);
    assert.deepEqual(
      decodes().map((count, index) => count - (before[index] ?? 0)),
      [5, 5],
    );
    for (const { counts, engine } of stages) {
      const { recomputedRows, prefilledRows, decodedRows, paddingRows } = counts();
      assert.deepEqual([recomputedRows, prefilledRows, decodedRows, paddingRows], [10, 0, 0, 0]);
      assert.deepEqual(
        [0, 1, 2].map((slot) => engine.nextPosition(slot)),
        [5, 3, 2],
      );
    }
  });
});

test('a lone row that had others beside it before the loss is padded in decode: fast too', () => {
  withHead((head) => {
    const session = new TestSession(0);
    head.run(headFrame([session.open, session.begin()]));
    head.run(headFrame([session.recompute(1, false)], [0]), headFrame([session.recompute(1, true)], [379]));
    assert.deepEqual([head.counts().paddingRows, head.counts().recomputedRows], [1, 2]);
    assert.equal(head.engine.nextPosition(0), 2);
    assert.equal(head.engine.usedCells(), 2);
  });
});

test('a receipt goes on from what ran before the loss; what ran again is counted apart', () => {
  withHead((head) => {
    const session = new TestSession(0);
    const begin = session.begin(greedy, {
      reusedRows: 3,
      ran: { prefilled: 6, decoded: 2 },
      history: prompt.map(tokenId),
      drawn: [500, 501, 502].map(tokenId),
    });
    const items = [session.open, begin, session.recompute(11, false), session.decode(3), session.end];
    const out = itemsOf(head.run(headFrame(items, [...prompt, 1, 2, 3, 500, 501, 502])));
    assert.deepEqual(receiptRows(out), [{ prefilled: 6, decoded: 3, reused: 3, recomputed: 11, padding: 0 }]);
  });
});

test('penalties count what is recomputed once: as history', async () => {
  const [likelier, other] = [100, 200].map(tokenId);
  assert.ok(likelier !== undefined && other !== undefined);
  const text = [0, 379, likelier, 264, 364, 12];
  let raw = new Float32Array();
  await withStages(
    [],
    ([head]) => {
      const draw = (sampling: Sampling): unknown => {
        const session = new TestSession(0);
        const change = { ran: { prefilled: 6, decoded: 0 }, history: text.map(tokenId), drawn: [tokenId(500)] };
        const begin = session.begin(sampling, change);
        const items = [session.open, begin, session.recompute(6, false), session.decode(1)];
        const out = itemsOf(head?.run(headFrame(items, [...text, 500])) ?? []);
        head?.core.reset();
        return out.find((item) => item.kind === 'token')?.token;
      };
      draw(greedy);
      const level = (token: number, wanted: number): number => wanted - (raw[token] ?? 0);
      const logitBias = [[likelier, level(likelier, 60)] as const, [other, level(other, 59.7)] as const];
      assert.equal(draw({ ...greedy, logitBias, frequencyPenalty: 0.2 }), likelier);
      assert.equal(draw({ ...greedy, logitBias, frequencyPenalty: 0.4 }), other);
    },
    {
      onDraw: (logits) => {
        raw = logits.slice();
      },
    },
  );
});

test('the end of a request that this stage does not know gives the receipt that the head remembers, if it does', () => {
  withHead((head) => {
    const session = new TestSession(0);
    session.begin();
    const ran = { prefilled: 9, decoded: 4, reused: 2 };
    const out = itemsOf(head.run(headFrame([{ ...session.end, ran }])));
    assert.deepEqual(receiptRows(out), [{ ...ran, recomputed: 0, padding: 0 }]);
    assert.equal(out[0]?.kind === 'end' && out[0].receipts[0]?.computeUs, 0);

    const known = new TestSession(1);
    const items = [known.open, known.begin(), known.prefill(6, false), { ...known.end, ran }];
    assert.deepEqual(receiptRows(itemsOf(head.run(headFrame(items, prompt)))), [
      { prefilled: 6, decoded: 0, reused: 0, recomputed: 0, padding: 0 },
    ]);
    assert.throws(() => head.run(headFrame([session.end])), isCode('STAGE_PROTOCOL'));
  });
});

function receiptRows(items: readonly HopItem[]): Partial<Receipt>[] {
  return items.flatMap((item) =>
    item.kind === 'end'
      ? item.receipts.map(({ prefilled, decoded, reused, recomputed, padding }) => ({
          ...{ prefilled, decoded, reused, recomputed, padding },
        }))
      : [],
  );
}

test('a frame whose recomputed rows sample, or whose drawn tokens there are not, is refused', () => {
  withHead((head) => {
    const session = new TestSession(0);
    const drawn = [tokenId(70_000)];
    const wrong = [
      () => headFrame([session.open, session.begin(), { ...session.recompute(6, false), samples: true }], prompt),
      () => headFrame([session.open, session.begin(greedy, { drawn })]),
    ];
    for (const frame of wrong)
      assert.throws(() => {
        head.core.accept(frame());
      }, isCode('FRAME_INVALID'));
    assert.equal(head.core.waitingFrames, 0);
  });
});

test('a grammar that does not allow what was drawn fails its request, whose rows are dropped', () => {
  withHead((head) => {
    const session = new TestSession(0);
    const begin = session.begin({ ...greedy, grammar: 'root ::= "yes"' }, { drawn: [tokenId(500)] });
    const items = [session.open, begin, session.recompute(7, false), session.end, session.close];
    const out = itemsOf(head.run(headFrame(items, [...prompt, 500])));
    assert.deepEqual(
      out.map((item) => (item.kind === 'failed' ? item.why : item.kind)),
      ['open', 'begin', 'grammar-invalid', 'end', 'close'],
    );
    assert.equal(head.counts().decodes, 0);
  });
});

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof P4Error && error.code === code;
}

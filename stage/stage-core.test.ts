import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { HopItem, Receipt } from '../protocol/hop-items.ts';
import { tokenId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { defaultSampling, type Sampling } from '../protocol/sampling.ts';
import { Candidates } from './candidates.ts';
import {
  complete,
  greedy,
  headFrame,
  itemsOf,
  roundRing,
  TestSession,
  testGeneration,
  tokensOf,
  withHead,
  withStages,
} from './core-fixture.ts';
import { argmax, decodeRows, sequenceRows, withEngine } from './engine-fixture.ts';
import type { Engine } from './engine.ts';
import { openSampler } from './sampler.ts';

const prompt = [0, 379, 395, 264, 364, 12];
const otherPrompt = [0, 500, 501, 502, 503];

/** What the uncut engine says when nothing of this folder but the engine is in between. */
function reference(engine: Engine, tokens: readonly number[], count: number): number[] {
  const found: number[] = [];
  let rows = sequenceRows(tokens);
  while (found.length < count) {
    found.push(argmax(decodeRows(engine, rows).at(-1) ?? new Float32Array()));
    rows = sequenceRows(found.slice(-1), 0, engine.nextPosition(0));
  }
  engine.removeSequence(0);
  return found;
}

for (const cuts of [[], [4], [2, 5], [1, 3, 6]]) {
  test(`${cuts.length + 1} stage(s) say what the uncut model says`, async () => {
    await withStages(cuts, (stages) => {
      const tokens = complete(stages, { session: new TestSession(0), prompt }, 32);
      withEngine({}, (whole) => {
        assert.deepEqual(tokens, reference(whole, prompt, 32));
      });
    });
  });
}

test('frames that wait together stay apart where one could not hold all of their items', async () => {
  await withStages([], ([stage]) => {
    assert.ok(stage !== undefined);
    const session = new TestSession(0);
    stage.run(headFrame([session.open]));
    const cuts = Array.from({ length: limits.frameItems / 4 }, (): HopItem => session.truncate(0));
    const out = stage.run(...Array.from({ length: 5 }, () => headFrame(cuts)));
    assert.deepEqual(
      out.map(({ items, completes }) => [items.length, completes]),
      [
        [cuts.length * 3, 3],
        [cuts.length * 2, 2],
      ],
    );
  });
});

test('frames that wait together are one decode but at the head, and their items keep their order', async () => {
  await withStages(
    [4],
    (stages) => {
      const alone = complete(stages, { session: new TestSession(3), prompt }, 2);
      const [first, second] = [new TestSession(0), new TestSession(1)];
      const before = stages.map(({ counts }) => counts().decodes);
      const out = roundRing(
        stages,
        headFrame([first.open, first.begin(), first.prefill(6, true)], prompt),
        headFrame([second.open, second.begin(), second.prefill(5, false)], otherPrompt),
        headFrame([second.prefill(1, true)], [379]),
      );
      assert.deepEqual(
        stages.map(({ counts }, index) => counts().decodes - (before[index] ?? 0)),
        [3, 1],
      );
      assert.deepEqual(
        itemsOf(out).map(({ kind }) => kind),
        ['open', 'begin', 'token', 'open', 'begin', 'token'],
      );
      assert.deepEqual(
        tokensOf(out).map(({ session }) => session),
        [first.session, second.session],
      );
      assert.equal(tokensOf(out)[0]?.token, alone[0]);
    },
    { decode: 'exact' },
  );
});

test('every input frame is completed once, and frames without rows go on as well', async () => {
  await withStages([4], ([head, tail]) => {
    assert.ok(head && tail);
    const session = new TestSession(0);
    const out = head.run(
      headFrame([session.open]),
      headFrame([session.begin(), session.prefill(3, false)], prompt.slice(0, 3)),
      headFrame([session.prefill(3, true)], prompt.slice(3)),
      headFrame([]),
    );
    assert.equal(
      out.reduce((sum, { completes }) => sum + completes, 0),
      4,
    );
    assert.deepEqual(
      out.map(({ source, destination, rows }) => [source, destination, rows]),
      [
        [0, 1, 3],
        [0, 1, 3],
        [0, 1, 0],
      ],
    );
    const answers = tail.run(...out);
    assert.deepEqual(
      answers.map(({ destination, rows, completes }) => [destination, rows, completes]),
      [[0, 0, 3]],
    );
  });
});

test('more rows than one shape class are several decodes, and no rows item is split', async () => {
  await withStages([4], ([head, tail]) => {
    assert.ok(head && tail);
    const sessions = [0, 1, 2].map((number) => new TestSession(number));
    const frames = sessions.map((session) =>
      headFrame([session.open, session.begin(), session.prefill(30, false)], Array<number>(30).fill(379)),
    );
    const decodes = (): number => tail.counts().decodes;
    assert.deepEqual(
      tail.run(...head.run(...frames)).map(({ completes }) => completes),
      [2, 1],
    );
    assert.equal(decodes(), 2);
  });
});

test('a frame says the longest of the decodes that it has been in, and how many rows that had', async () => {
  await withStages([4], ([head, tail]) => {
    assert.ok(head && tail);
    const session = new TestSession(0);
    const rows = [session.open, session.begin(), session.prefill(6, true)];
    const [between] = head.run(headFrame(rows, prompt));
    assert.ok(between !== undefined && between.slowest.us > 0);
    assert.equal(between.slowest.rows, 6);
    const [quick] = tail.run({ ...between, slowest: { rows: 63, us: 2 ** 32 - 1 } });
    assert.deepEqual(quick?.slowest, { rows: 63, us: 2 ** 32 - 1 });
    const [idle] = head.run(headFrame([session.end]));
    assert.deepEqual(idle?.slowest, { rows: 0, us: 0 });
  });
});

test('an item that touches gathered rows waits for their decode, one that does not is passed on beside them', () => {
  withHead((head) => {
    const [first, second] = [new TestSession(0), new TestSession(1)];
    const out = head.run(
      headFrame(
        [first.open, first.begin(), first.prefill(6, true), second.open, second.begin(), second.prefill(1, false)],
        [...prompt, 0],
      ),
      headFrame([first.end, first.truncate(4), second.end]),
    );
    assert.deepEqual(
      out.map(({ items }) => items.map(({ kind }) => kind)),
      [
        ['open', 'begin', 'token', 'open', 'begin'],
        ['end', 'truncate', 'end'],
      ],
    );
    assert.equal(head.engine.nextPosition(0), 4);
    assert.equal(head.engine.nextPosition(1), 1);
    assert.equal(head.counts().kvCellsUsed, 5);
  });
});

test('receipts of all stages agree on the rows, and carry the generation', async () => {
  await withStages([2, 5], (stages) => {
    const session = new TestSession(0);
    complete(stages, { session, prompt }, 3);
    const receiptsOf = (items: readonly HopItem[]): readonly Receipt[] =>
      items.flatMap((item) => (item.kind === 'end' ? item.receipts : []));
    const receipts = receiptsOf(itemsOf(roundRing(stages, headFrame([session.end]))));
    assert.deepEqual(
      receipts.map(({ node, prefilled, decoded, reused, recomputed, padding, sourceGeneration }) => ({
        node,
        rows: [prefilled, decoded, reused, recomputed, padding],
        sourceGeneration,
      })),
      [0, 1, 2].map((node) => ({ node, rows: [6, 2, 0, 0, 0], sourceGeneration: testGeneration })),
    );
    for (const { computeUs } of receipts) assert.ok(computeUs > 0);

    const again = [
      session.truncate(4),
      session.begin(greedy, { reusedRows: 4 }),
      session.prefill(2, true),
      session.end,
    ];
    const [second] = receiptsOf(itemsOf(roundRing(stages, headFrame(again, prompt.slice(4)))));
    assert.deepEqual([second?.prefilled, second?.decoded, second?.reused], [2, 0, 4]);
  });
});

test('decode: exact pads a lone row, and counts it as padding', () => {
  withHead(
    (head) => {
      const session = new TestSession(0);
      complete([head], { session, prompt }, 3);
      const [end] = itemsOf(head.run(headFrame([session.end])));
      assert.ok(end?.kind === 'end');
      assert.deepEqual(
        end.receipts.map(({ decoded, padding }) => [decoded, padding]),
        [[2, 2]],
      );
      assert.equal(head.counts().paddingRows, 2);
    },
    { decode: 'exact' },
  );
});

test('rows that are cut off and fed again give the same token', () => {
  withHead((head) => {
    const session = new TestSession(0);
    const [first] = complete([head], { session, prompt }, 4);
    const again = [
      session.end,
      session.truncate(5),
      session.begin(greedy, { reusedRows: 5 }),
      session.prefill(1, true),
    ];
    assert.equal(tokensOf(head.run(headFrame(again, prompt.slice(5))))[0]?.token, first);
  });
});

test('penalties know the prompt, the reused history and each drawn token once', () => {
  const sampling: Sampling = { ...defaultSampling, repeatPenalty: 1.3, frequencyPenalty: 0.7, seed: 11 };
  const history = [379, 379, 12];
  withHead((head) => {
    const session = new TestSession(0);
    const begin = [session.open, session.begin(sampling, { history: history.map(tokenId) }), session.prefill(6, true)];
    let out = head.run(headFrame(begin, prompt));
    const found: number[] = [];
    while (found.length < 24) {
      found.push(tokensOf(out)[0]?.token ?? -1);
      out = head.run(headFrame([session.decode(found.length)], found.slice(-1)));
    }
    head.core.reset();

    const { engine } = head;
    const sampler = openSampler(engine.vocabulary, new Candidates(engine.vocabulary.size), sampling);
    sampler.acceptPrompt([...history, ...prompt]);
    const expected: number[] = [];
    let rows = sequenceRows(prompt);
    while (expected.length < 24) {
      const drawn = sampler.sample(decodeRows(engine, rows).at(-1) ?? new Float32Array(), expected.length);
      expected.push(drawn.kind === 'token' ? drawn.token : -1);
      rows = sequenceRows(expected.slice(-1), 0, engine.nextPosition(0));
    }
    sampler.close();
    assert.deepEqual(found, expected);
  });
});

test('a grammar steers the draw, and its end is an end of generation or a dead end', () => {
  withHead((head) => {
    const session = new TestSession(0);
    const sampling: Sampling = { ...greedy, grammar: 'root ::= "yes"' };
    let out = head.run(headFrame([session.open, session.begin(sampling), session.prefill(6, true)], prompt));
    const pieces = head.engine.vocabulary.pieces();
    let text = '';
    let step = 0;
    for (let token = tokensOf(out)[0]?.token; token !== undefined; token = tokensOf(out)[0]?.token) {
      if (head.engine.vocabulary.isEndOfGeneration(token)) break;
      text += Buffer.from(pieces.bytes.subarray(pieces.offsets[token], pieces.offsets[token + 1])).toString();
      out = head.run(headFrame([session.decode(++step)], [token]));
    }
    assert.equal(text, 'yes');
  });
});

for (const decode of ['fast', 'exact'] as const) {
  test(`a probe goes round, computes on every stage and leaves no trace (decode: ${decode})`, async () => {
    await withStages(
      [4],
      (stages) => {
        const probe: HopItem = { kind: 'probe', nonce: 7 };
        assert.deepEqual(itemsOf(roundRing(stages, headFrame([probe]))), [probe]);
        for (const { engine, counts } of stages) {
          assert.equal(engine.usedCells(), 0);
          assert.deepEqual([counts().decodes, counts().prefilledRows, counts().kvCellsUsed], [0, 0, 0]);
        }
      },
      { decode },
    );
  });
}

test('after a reset the slots are free and the KV cache is empty', () => {
  withHead((head) => {
    const session = new TestSession(0);
    const tokens = complete([head], { session, prompt }, 3);
    head.core.accept(headFrame([session.decode(3)], [379]));
    head.core.reset();
    assert.equal(head.core.waitingFrames, 0);
    assert.equal(head.engine.usedCells(), 0);
    assert.deepEqual(complete([head], { session: new TestSession(0), prompt }, 3), tokens);
  });
});

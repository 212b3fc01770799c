/** Rows that an ended session left are another session's, bit for bit, on every stage; and go when they are dropped. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import type { Frame } from '../protocol/hop-frame.ts';
import type { AdoptItem, DropItem, HopItem, KeepItem } from '../protocol/hop-items.ts';
import { keptIndex, tokenId } from '../protocol/ids.ts';
import type { Sampling } from '../protocol/sampling.ts';
import {
  greedy,
  headFrame,
  itemsOf,
  roundRing,
  TestSession,
  testStages,
  tokensOf,
  withStages,
} from './core-fixture.ts';
import type { TestStage } from './core-fixture.ts';
import { withEngine } from './engine-fixture.ts';

const beginning = Array.from({ length: 40 }, (_none, row) => (row * 37 + 11) % 1000);
const ending = [17, 400, 23, 9, 310];
const bounds = { sessions: 3, keptPrefixes: 2, sequences: 5 } as const;

const keep = ({ session, slot }: TestSession, length: number, kept = 0): KeepItem => ({
  ...{ kind: 'keep', session, slot, kept: keptIndex(kept), length },
});
const adopt = ({ session, slot }: TestSession, length: number, takes: boolean): AdoptItem => ({
  ...{ kind: 'adopt', session, slot, kept: keptIndex(0), length, takes },
});
const drop = (kept = 0): DropItem => ({ kind: 'drop', kept: keptIndex(kept) });

type Way = 'whole' | 'shares' | 'takes';

interface Hearing {
  readonly way: Way;
  readonly sampling: Sampling;
  /** Whether cells are left empty in front of its own: in `fast`, rows come to lie there in another order (X2). */
  readonly hasHoles: boolean;
}

/** What a session draws, its beginning run by itself or left by another. */
function heard(stages: readonly TestStage[], { way, sampling, hasHoles }: Hearing): number[] {
  const [former, neighbour, session] = [0, 1, 2].map((slot) => new TestSession(slot));
  assert.ok(former && neighbour && session);
  const run = (items: readonly HopItem[], tokens: readonly number[] = []) =>
    roundRing(stages, headFrame(items, tokens));
  if (hasHoles) {
    run([neighbour.open, neighbour.begin(sampling), neighbour.prefill(9, false)], beginning.slice(0, 9));
  }
  // Three rows beyond what the session begins with.
  run([former.open, former.begin(sampling), former.prefill(43, true)], [...beginning, 5, 6, 7]);
  run([former.end, keep(former, 43), ...(hasHoles ? [neighbour.end, neighbour.close] : [])]);
  const history = beginning.map(tokenId);
  if (way === 'whole') {
    run([drop(), session.open, session.begin(sampling), session.prefill(40, false)], beginning);
  } else {
    session.truncate(40);
    const begin = session.begin(sampling, { reusedRows: 40, history });
    run([session.open, adopt(session, 40, way === 'takes'), begin]);
  }
  const drawn: number[] = [];
  let out = run([session.prefill(ending.length, true)], ending);
  for (let step = 1; ; step += 1) {
    const [draw] = tokensOf(out);
    assert.ok(draw);
    drawn.push(draw.token);
    if (step === 12) break;
    if (step === 6 && hasHoles && way === 'shares') run([drop()]);
    out = run([session.decode(step)], [draw.token]);
  }
  if (!hasHoles && way === 'shares') run([drop()]);
  assert.deepEqual(
    stages.map(({ counts }) => [counts().kvCellsUsed, counts().kvCellsKept]),
    stages.map(() => [40 + ending.length + 11, 0]),
  );
  checkReceipts(run([session.end]), way);
  run([session.close]);
  for (const { engine } of stages) assert.equal(engine.usedCells(), 0);
  return drawn;
}

function checkReceipts(frames: readonly Frame[], way: Way): void {
  const [receipts] = itemsOf(frames).flatMap((item) => (item.kind === 'end' ? [item.receipts] : []));
  const prefilled = way === 'whole' ? 45 : 5;
  for (const receipt of receipts ?? []) {
    assert.deepEqual([receipt.prefilled, receipt.decoded, receipt.reused], [prefilled, 11, 45 - prefilled]);
  }
}

for (const decode of ['fast', 'exact'] as const) {
  for (const cuts of [[], [2, 5]]) {
    test(`a session that begins with another's rows has the bits of one that ran them (${String(cuts.length + 1)} stage(s), decode: ${decode})`, async () => {
      for (const sampling of [greedy, { ...greedy, temperature: 0.8, seed: 5, repeatPenalty: 1.2 }]) {
        const texts: unknown[] = [];
        for (const way of ['whole', 'shares', 'takes'] as const) {
          const logits: string[] = [];
          const onDraw = (row: Float32Array): void => {
            logits.push(Buffer.from(new Uint8Array(row.buffer, row.byteOffset, row.byteLength)).toString('base64'));
          };
          await withStages(
            cuts,
            (stages) => {
              texts.push([heard(stages, { way, sampling, hasHoles: decode === 'exact' }), logits]);
            },
            { decode, onDraw, ...bounds },
          );
        }
        const [whole, ...others] = texts;
        for (const other of others) assert.deepEqual(other, whole);
      }
    });
  }
}

test('a stage that lost rows of a session keeps those that it has, and says so', async () => {
  await withStages(
    [4],
    (stages) => {
      const [session] = [new TestSession(0)];
      const refused = session.begin({ ...greedy, grammar: 'root ::= missing' });
      roundRing(stages, headFrame([session.open, refused, session.prefill(20, true)], beginning.slice(0, 20)));
      const out = itemsOf(roundRing(stages, headFrame([session.end, keep(session, 20)])));
      assert.deepEqual(
        out.flatMap((item) => (item.kind === 'keep' ? [item.length] : [])),
        [0],
        'no row of it ran on the tail',
      );
      assert.deepEqual(
        stages.map(({ counts }) => [counts().kvCellsUsed, counts().kvCellsKept]),
        [
          [0, 20],
          [0, 0],
        ],
      );
      roundRing(stages, headFrame([drop()]));
      for (const { engine } of stages) assert.equal(engine.usedCells(), 0);
    },
    bounds,
  );
});

test('kept rows that contradict what came before end the stage', () => {
  const left = (session: TestSession): HopItem[] => [
    session.open,
    session.begin(),
    session.prefill(20, false),
    session.end,
    keep(session, 20),
  ];
  const cases: Readonly<Record<string, (one: TestSession, other: TestSession) => readonly HopItem[]>> = {
    'a place that is taken': (one, other) => [...left(one), other.open, keep(other, 0)],
    'a place that is not there': (one) => [one.open, keep(one, 0, 2)],
    'what a session keeps that it does not have': (one) => [keep(one, 0)],
    'a keep while the request goes on': (one) => [one.open, one.begin(), keep(one, 0)],
    'more rows than there are': (one, other) => [...left(one), other.open, adopt(other, 21, false)],
    'an adoption of nothing': (_one, other) => [other.open, adopt(other, 1, false)],
    'an adoption by a session with rows': (one, other) => [
      ...left(one),
      other.open,
      other.begin(),
      other.prefill(1, false),
      adopt(other, 20, true),
    ],
    'what was taken is adopted again': (one, other) => [
      ...left(one),
      one.open,
      adopt(one, 20, true),
      other.open,
      adopt(other, 20, false),
    ],
    'a prefix that is dropped twice': (one) => [...left(one), drop(), drop()],
  };
  withEngine({ sequences: 5 }, (engine) => {
    for (const [name, items] of Object.entries(cases)) {
      const [head] = testStages([engine], bounds);
      assert.ok(head);
      const made = items(new TestSession(0), new TestSession(1));
      const rows = made.reduce((sum, item) => sum + (item.kind === 'rows' ? item.rowCount : 0), 0);
      assert.throws(
        () => head.run(headFrame(made, beginning.slice(0, rows))),
        (error) => error instanceof P4Error && error.code === 'STAGE_PROTOCOL',
        name,
      );
      head.core.reset();
    }
  });
});

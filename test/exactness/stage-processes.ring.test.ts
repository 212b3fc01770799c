/**
 * Stages in processes of their own, fed with frames over their sockets: the hidden state in every frame is the uncut model's
 * at that layer boundary, bit for bit, and the tail draws the token that the uncut model's logits say.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { decodeFrame, encodeFrame } from '../../protocol/hop-frame.ts';
import { greedy, headFrame, TestSession, tokensOf } from '../../stage/core-fixture.ts';
import { floatsOf } from '../../stage/engine-fixture.ts';
import { startFleet } from '../ring/stage-fleet.ts';
import { BitComparison } from './bit-comparison.ts';
import { recordAll } from './proof.ts';
import { greedyToken } from './recording.ts';
import { chunkedScript, randomTokens } from './script.ts';
import { stories } from './subjects.ts';

/** The first layer of each stage but the first. */
const cuts = [1, 4, 6];
const steps = 64;

for (const chunkRows of [16, 63]) {
  test(`stage processes pass on the uncut model's hidden state, prompt in chunks of ${String(chunkRows)}`, async (t) => {
    const prompt = randomTokens(7, 63, 1024);
    const [recording] = recordAll(stories, [chunkedScript(prompt, chunkRows, steps)]);
    const { decodes } = present(recording, 'the script was recorded');
    const comparison = new BitComparison();
    const drawn: number[] = [];
    const fleet = await startFleet(cuts);
    try {
      assert.equal(new Set(fleet.stages.map(({ handle }) => handle.pid)).size, cuts.length + 1);
      const session = new TestSession(0);
      for (const [index, { batch, hidden }] of decodes.entries()) {
        const rows = batch.tokens.length;
        const isDrawn = batch.outputs.includes(true);
        const opening = index === 0 ? [session.open, session.begin(greedy)] : [];
        const item = drawn.length === 0 ? session.prefill(rows, isDrawn) : session.decode(drawn.length);
        let bytes: Uint8Array<ArrayBuffer> = encodeFrame(headFrame([...opening, item], batch.tokens));
        for (const [stage, process] of fleet.stages.entries()) {
          bytes = await process.answer(bytes);
          const boundary = cuts[stage];
          if (boundary === undefined) continue;
          const found = floatsOf(decodeFrame(bytes).hidden);
          comparison.add(found, present(hidden[boundary - 1], 'every boundary is recorded'), rows);
        }
        drawn.push(...tokensOf([decodeFrame(bytes)]).map(({ token }) => Number(token)));
      }
    } finally {
      await fleet.stop();
    }
    t.diagnostic(`${String(cuts.length + 1)} processes, ${String(decodes.length)} frames: ${comparison.text}`);
    assert.ok(comparison.isExact, comparison.text);
    const expected = decodes.flatMap(({ logits }) => logits.map(greedyToken));
    assert.equal(expected.length, steps + 1);
    assert.deepEqual(drawn, expected);
  });
}

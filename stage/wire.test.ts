/** Stages whose hidden state travels in float16 (`wire: f16`). */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { WireType } from '../protocol/plan.ts';
import { P4Error } from '../protocol/errors.ts';
import type { Frame } from '../protocol/hop-frame.ts';
import { complete, headFrame, roundRing, TestSession, tokensOf, withStages } from './core-fixture.ts';

const prompt = [0, 379, 395, 264, 364, 12];
const otherPrompt = [0, 500, 501, 502, 503];

test('frames between stages are of the type of the load', async () => {
  for (const wire of ['f32', 'f16'] as const) {
    await withStages(
      [4],
      ([head]) => {
        assert.ok(head !== undefined);
        const session = new TestSession(0);
        const [out] = head.run(headFrame([session.open, session.begin(), session.prefill(6, true)], prompt));
        assert.deepEqual([out?.wire, out?.rows, out?.width], [wire, 6, head.engine.width]);
      },
      { wire },
    );
  }
});

test('a probe goes round in float16', async () => {
  await withStages(
    [2, 5],
    (stages) => {
      const out = roundRing(stages, headFrame([{ kind: 'probe', nonce: 3 }]));
      assert.deepEqual(out[0]?.items, [{ kind: 'probe', nonce: 3 }]);
    },
    { wire: 'f16' },
  );
});

test('decode: exact is the same beside a neighbour, bit for bit, in float16 as in float32 (X2)', async () => {
  const texts = new Map<WireType, string>();
  for (const wire of ['f32', 'f16'] as const) {
    const drawn: number[][] = [];
    const options = {
      ...({ wire, decode: 'exact' } as const),
      onDraw: (logits: Float32Array) => {
        drawn.push([...new Uint32Array(logits.slice().buffer)]);
      },
    };
    await withStages(
      [2, 5],
      (stages) => {
        const alone = complete(stages, { session: new TestSession(0), prompt }, 16);
        const aloneLogits = drawn.splice(0);
        const [session, neighbour] = [new TestSession(1), new TestSession(2)];
        let out = roundRing(
          stages,
          headFrame([neighbour.open, neighbour.begin(), neighbour.prefill(5, true)], otherPrompt),
          headFrame([session.open, session.begin(), session.prefill(6, true)], prompt),
        );
        const beside: number[] = [];
        const besideLogits: number[][] = [];
        for (let step = 1; ; step += 1) {
          const [other, own] = tokensOf(out);
          assert.ok(own?.session === session.session && other !== undefined);
          beside.push(own.token);
          besideLogits.push(...drawn.splice(0).slice(1));
          if (step === 16) break;
          out = roundRing(stages, headFrame([neighbour.decode(step), session.decode(step)], [other.token, own.token]));
        }
        assert.deepEqual(beside, alone);
        assert.deepEqual(besideLogits, aloneLogits);
        texts.set(wire, JSON.stringify(aloneLogits));
      },
      options,
    );
  }
  assert.notEqual(texts.get('f16'), texts.get('f32'), 'the hops are rounded');
});

test('a frame of another type changes nothing on the stage that refuses it', async () => {
  const firstHop = async (wire: WireType): Promise<Frame> => {
    const found: Frame[] = [];
    await withStages(
      [4],
      ([head]) => {
        const session = new TestSession(0);
        const opening = headFrame([session.open, session.begin(), session.prefill(6, true)], prompt);
        found.push(...(head?.run(opening) ?? []));
      },
      { wire },
    );
    const [frame] = found;
    assert.ok(frame !== undefined);
    return frame;
  };
  const hops = { f32: await firstHop('f32'), f16: await firstHop('f16') };
  for (const [wire, other] of [
    ['f32', 'f16'],
    ['f16', 'f32'],
  ] as const) {
    await withStages([4], ([, tail]) => {
      assert.ok(tail !== undefined);
      assert.throws(
        () => { tail.core.accept(hops[other]); },
        (error) => error instanceof P4Error && error.code === 'FRAME_INVALID' && error.facts['found'] === other,
      ); // prettier-ignore
      assert.equal(tail.core.waitingFrames, 0);
      assert.equal(tail.counts().decodes, 0);
      assert.equal(tokensOf(tail.run(hops[wire])).length, 1);
    }, { wire }); // prettier-ignore
  }
});

/** Stages that begin anew after a loss, and are brought back as the head does it: R2's weights and R3's bits. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { decodeFrame, encodeFrame, type Frame } from '../../protocol/hop-frame.ts';
import { headFrame, itemsOf, TestSession, testGeneration, tokensOf } from '../../stage/core-fixture.ts';
import { floatsOf } from '../../stage/engine-fixture.ts';
import { talk, type Said, type TalkPlan } from '../../stage/talk-fixture.ts';
import { FleetStage, startFleet } from './stage-fleet.ts';

const prompt = [0, 379, 395, 264, 364, 12];

interface ToldTalk extends Said {
  /** Hidden state of the rows that drew, in the order in which it left each stage. */
  readonly hidden: readonly Buffer[];
}

/** @param recover what is done to the ring when its stages are to begin anew; the stages from then on */
async function tellRing(
  stages: readonly FleetStage[],
  plan: TalkPlan,
  recover: (stages: readonly FleetStage[]) => Promise<readonly FleetStage[]>,
): Promise<ToldTalk> {
  const hidden: Buffer[] = [];
  const talking = talk(plan);
  let ring = stages;
  let step = talking.next();
  while (step.done !== true) {
    if (step.value.kind === 'loss') {
      // On its way while the connections go.
      for (const bytes of await present(ring[0], 'a head').run([encodeFrame(step.value.underWay)]))
        ring[1]?.connection.sendFrame(bytes);
      ring = await recover(ring);
      step = talking.next([]);
      continue;
    }
    let frames: readonly Uint8Array<ArrayBuffer>[] = [encodeFrame(step.value.frame)];
    for (const stage of ring) {
      frames = await stage.run(frames);
      hidden.push(...frames.map(decodeFrame).flatMap(drawingRows));
    }
    step = talking.next(itemsOf(frames.map(decodeFrame)));
  }
  return { ...step.value, hidden };
}

function drawingRows({ items, hidden }: Frame): Buffer[] {
  if (hidden === null || !items.some((item) => item.kind === 'rows' && item.samples)) return [];
  return [Buffer.from(floatsOf(hidden).buffer)];
}

const lost = async (stages: readonly FleetStage[]): Promise<readonly FleetStage[]> => {
  for (const stage of stages) await stage.reattach();
  return stages;
};

for (const decode of ['fast', 'exact'] as const) {
  test(`R3: stages that begin anew, and one that was killed, go on bit for bit (decode: ${decode})`, async () => {
    const fleet = await startFleet([2, 5], { decode });
    const [head, middle, tail] = fleet.stages;
    assert.ok(head && middle && tail);
    let replaced: FleetStage | null = null;
    const killed = async (): Promise<readonly FleetStage[]> => {
      process.kill(middle.handle.pid, 'SIGKILL');
      await middle.handle.exited;
      replaced = await FleetStage.start(fleet.folder, middle.order);
      await replaced.load();
      await lost([head, tail]);
      return [head, replaced, tail];
    };
    try {
      const undisturbed = await tellRing(fleet.stages, { lossAfter: null }, lost);
      assert.ok(undisturbed.hidden.length > 40);
      await lost(fleet.stages);
      const { incarnation } = head.connection.welcome;
      for (const [lossAfter, recover] of [
        [3, lost],
        [14, lost],
        [11, killed],
      ] as const) {
        const told = await tellRing(fleet.stages, { lossAfter }, recover);
        assert.deepEqual(told.tokens, undisturbed.tokens);
        assert.equal(told.hidden.length, undisturbed.hidden.length);
        const differs = told.hidden.findIndex((rows, index) => undisturbed.hidden[index]?.equals(rows) !== true);
        assert.equal(differs, -1, `lost after ${String(lossAfter)} turns`);
        assert.deepEqual(rowsOf(told), rowsOf(undisturbed));
        assert.ok(told.receipts.every(({ recomputed }) => recomputed > 0));
        if (recover === lost) await lost(fleet.stages);
      }
      assert.equal(head.connection.welcome.incarnation, incarnation);
      assert.ok((await head.connection.report()).recomputedRows > 0);
      assert.equal(head.lines.filter((line) => line.kind === 'record' && line.record['event'] === 'loaded').length, 1);
    } finally {
      await (replaced as FleetStage | null)?.stop();
      await fleet.stop();
    }
  });
}

const rowsOf = ({ receipts }: Said): number[][] =>
  receipts.map(({ node, prefilled, decoded, reused }) => [node, prefilled, decoded, reused]);

test('a stage whose agent has left keeps its weights and waits for the next one', async () => {
  const fleet = await startFleet([]);
  try {
    const [stage] = fleet.stages;
    assert.ok(stage);
    const session = new TestSession(0);
    await stage.answer(encodeFrame(headFrame([session.open, session.begin(), session.prefill(6, false)], prompt)));
    const { incarnation } = stage.connection.welcome;
    stage.connection.close();
    await untilSaid(stage, 'agent-left');
    const next = await stage.connect();
    assert.equal(next.welcome.incarnation, incarnation);
    assert.equal(next.welcome.holds?.generation, testGeneration.toString());
    await stage.attach();
    assert.equal((await next.report()).kvCellsUsed, 0);
    const again = new TestSession(0);
    const opening = headFrame([again.open, again.begin(), again.prefill(6, true)], prompt);
    assert.equal(tokensOf([decodeFrame(await stage.answer(encodeFrame(opening)))]).length, 1);
    assert.equal(saysOf(stage).filter((event) => event === 'loaded').length, 1);
    assert.equal(stage.losses.length, 0);
  } finally {
    await fleet.stop();
  }
});

const saysOf = ({ lines }: FleetStage): unknown[] =>
  lines.map((line) => (line.kind === 'record' ? line.record['event'] : line.text));

async function untilSaid(stage: FleetStage, event: string): Promise<void> {
  const endsAtMs = performance.now() + 10_000;
  while (!saysOf(stage).includes(event)) {
    assert.ok(performance.now() < endsAtMs, `it says ${event} within 10 s`);
    await delay(10);
  }
}

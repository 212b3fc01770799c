import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { P4Error } from '../../protocol/errors.ts';
import { encodeFrame, noStep } from '../../protocol/hop-frame.ts';
import type { RowsItem } from '../../protocol/hop-items.ts';
import {
  generation,
  hostName,
  loadId,
  nodeIndex,
  requestId,
  ringName,
  sessionId,
  slotIndex,
} from '../../protocol/ids.ts';
import type { WireType } from '../../protocol/plan.ts';
import { RingRoutes } from './ring-routes.ts';

test('that a stage loads is told towards the head alone: it comes to an end there (R1)', () => {
  const [alpha, beta] = [hostName('alpha'), hostName('beta')];
  const routes = new RingRoutes({
    ...{ load: loadId('0'.repeat(32)), generation: generation('7'), wire: 'f32', host: alpha, trail: () => undefined },
    hosts: [alpha, beta, alpha, beta, alpha, beta],
    events: {
      returned: () => undefined,
      frameFinished: () => undefined,
      lost: (error) => {
        throw error;
      },
    },
  });
  const told: number[] = [];
  for (const source of [1, 3, 5]) {
    const destination = nodeIndex((source + 1) % 6);
    const edge = { ring: ringName('toy'), generation: generation('7'), source: nodeIndex(source), destination };
    const answer = routes.incoming(edge);
    assert.ok(answer.kind === 'accepted');
    answer.onLoading(() => told.push(destination));
  }
  routes.tellLoading(nodeIndex(2));
  assert.deepEqual(told, [2]);
  routes.tellLoading(nodeIndex(4));
  assert.deepEqual(told, [2, 2, 4]);
});

test("a hidden state of another type than the load's ends the ring's ways, whether a stage or a link brings it", () => {
  const alpha = hostName('alpha');
  for (const from of ['stage', 'link'] as const) {
    for (const wire of ['f32', 'f16'] as const) {
      const losses: P4Error[] = [];
      const routes = new RingRoutes({
        ...{ load: loadId('0'.repeat(32)), generation: generation('7'), wire, host: alpha, trail: () => undefined },
        hosts: from === 'stage' ? [alpha, alpha] : [hostName('beta'), alpha],
        events: { returned: () => undefined, frameFinished: () => undefined, lost: (error) => losses.push(error) },
      });
      const taken: Uint8Array[] = [];
      for (const node of from === 'stage' ? [0, 1] : [1])
        routes.addStage(nodeIndex(node), (frame) => taken.push(frame));
      const edge = {
        ring: ringName('toy'),
        generation: generation('7'),
        source: nodeIndex(0),
        destination: nodeIndex(1),
      };
      const incoming = from === 'link' ? routes.incoming(edge) : null;
      const bring = (type: WireType): void => {
        const hidden =
          type === 'f32' ? new Float32Array(4) : { halves: new Uint16Array(4), exponents: new Uint8Array(1) };
        const item: RowsItem = {
          kind: 'rows',
          ...{ session: sessionId(1), request: requestId(1), slot: slotIndex(0), step: 0, firstPosition: 0 },
          ...{ rowCount: 1, phase: 'prefill', samples: false, alone: false },
        };
        const frame = encodeFrame({
          ...{ ...edge, number: 1n, completes: 0, slowest: noStep, items: [item], tokens: Uint32Array.of(1), hidden },
        });
        if (incoming === null) routes.output(nodeIndex(0), frame);
        else if (incoming.kind === 'accepted') incoming.receive(frame, () => undefined);
      };
      bring(wire);
      assert.deepEqual([losses.length, taken.length], [0, from === 'stage' ? 1 : 0], `${from} ${wire}`);
      bring(wire === 'f32' ? 'f16' : 'f32');
      assert.deepEqual(
        losses.map(({ code, facts }) => [code, facts['field']]),
        [['FRAME_INVALID', 'hidden state type']],
      );
    }
  }
});

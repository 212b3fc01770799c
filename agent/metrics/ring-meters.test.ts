import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { loadId, nodeIndex, requestId, ringName, sessionId, slotIndex } from '../../protocol/ids.ts';
import type { RowsItem } from '../../protocol/hop-items.ts';
import type { RequestEnded } from '../records.ts';
import { RingMeter } from './ring-meter.ts';

const load = loadId('0'.repeat(32));
const newMeter = (running = 0): RingMeter => new RingMeter({ ring: ringName('toy'), load, running, nowMs: 1000 });
const request = requestId(5);
const ended: RequestEnded = {
  ...{ kind: 'request-ended', load, session: sessionId(1), request, reason: 'length', detail: '' },
  ...{ promptTokens: 9, reused: 2, heldTokens: 9, heldRows: 9, alone: false },
};
const rows = (phase: RowsItem['phase'], rowCount: number): RowsItem => ({
  ...{ kind: 'rows', session: sessionId(1), request, slot: slotIndex(0), step: 0, firstPosition: 0 },
  ...{ rowCount, phase, samples: true, alone: false },
});

suite('a ring’s meter', () => {
  test('times a request from its admission: queue, first token, tokens between, end', () => {
    const meter = newMeter();
    meter.requestAdmitted({ request }, 2000);
    assert.equal(meter.unfed, 1);
    meter.fed([rows('prefill', 5)], 2100);
    meter.fed([rows('prefill', 2)], 2200);
    meter.tokenDrawn(request, 2450);
    meter.tokenDurable(request, 2500);
    meter.fed([rows('decode', 1)], 2450);
    meter.tokenDrawn(request, 2700);
    meter.tokenDurable(request, 2760);
    meter.requestEnded(ended, 3000);
    assert.deepEqual([meter.promptTokens, meter.generatedTokens, meter.reusedTokens, meter.unfed], [7, 2, 2, 0]);
    const { queue, firstToken, interToken, duration } = meter;
    assert.deepEqual(
      [queue, firstToken, interToken, duration].map(({ count, sum }) => [count, sum]),
      [
        [1, 0.1],
        [1, 0.5],
        [1, 0.25],
        [1, 1],
      ],
    );
    assert.deepEqual(meter.activity(9000), { activeSeconds: 1, requestSeconds: 1 });
  });

  test('counts what requests take over from ended sessions', () => {
    const meter = newMeter();
    meter.requestAdmitted({ request, adopted: [0, 1, 16] }, 2000);
    meter.requestAdmitted({ request: requestId(6) }, 2000);
    assert.equal(meter.adoptedTokens, 17);
  });

  test('counts time once for the ring and once for each request in it', () => {
    const meter = newMeter();
    meter.requestAdmitted({ request }, 2000);
    meter.requestAdmitted({ request: requestId(6) }, 3000);
    assert.deepEqual(meter.activity(4000), { activeSeconds: 2, requestSeconds: 3 });
    meter.requestEnded(ended, 5000);
    meter.requestEnded({ ...ended, request: requestId(6) }, 6000);
    assert.deepEqual(meter.activity(7000), { activeSeconds: 4, requestSeconds: 6 });
  });

  test('of a request that began under a former agent counts tokens and its end, and times only what it saw', () => {
    const meter = newMeter(1);
    for (const [drawnMs, durableMs] of [
      [2000, 2020],
      [2010, 2020],
    ] as const) {
      meter.tokenDrawn(request, drawnMs);
      meter.tokenDurable(request, durableMs);
    }
    meter.requestEnded(ended, 3000);
    assert.equal(meter.generatedTokens, 2);
    assert.equal(meter.finished.get('length'), 1);
    assert.deepEqual([meter.firstToken.count, meter.interToken.count, meter.duration.count], [0, 1, 0]);
    assert.deepEqual(meter.activity(4000), { activeSeconds: 2, requestSeconds: 2 });
  });

  test('knows losses from returns, and a load from a return', () => {
    const meter = newMeter();
    meter.stands({ isUp: false, isSuspended: false }, 2000);
    meter.stands({ isUp: true, isSuspended: false }, 4000);
    assert.equal(meter.loadSeconds, 3);
    meter.stands({ isUp: false, isSuspended: true }, 5000);
    meter.stands({ isUp: false, isSuspended: true }, 6000);
    assert.equal(meter.suspendedSeconds(6500), 1.5);
    meter.stageLost(nodeIndex(1));
    meter.stands({ isUp: true, isSuspended: false }, 7000);
    assert.deepEqual([meter.suspensions, meter.recoveries, meter.suspendedSeconds(9000)], [1, 1, 2]);
    assert.equal(meter.loadSeconds, 3);
    const restored = newMeter();
    restored.stands({ isUp: false, isSuspended: true }, 2000);
    restored.stands({ isUp: true, isSuspended: false }, 3000);
    assert.equal(restored.loadSeconds, null, 'it was loaded under a former agent');
    restored.stands({ isUp: false, isSuspended: true }, 4000);
    restored.stands({ isUp: false, isSuspended: false }, 5000);
    assert.equal(restored.recoveries, 1, 'one that is taken down has not recovered');
  });
});

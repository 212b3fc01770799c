import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { generation, ringName } from '../../protocol/ids.ts';
import { RingCalls } from '../../provisioner/ring-calls.ts';
import { clientOf, startTestServer, testFleet } from './test-fleet.ts';

test('a settlement is asked for until its receipts are there, or the time is over (S3)', async (t) => {
  const fleet = await testFleet();
  const states: string[] = [];
  let left = 0;
  const { server, port } = await startTestServer({
    tls: fleet.alpha,
    outer: {
      Settle: ({ request, session }) => {
        if (request !== 12) return Promise.reject(new P4Error('REQUEST_UNKNOWN', { request }));
        const state = left-- > 0 ? 'ending' : 'settled';
        states.push(state);
        return Promise.resolve({ state, reason: '', stages: [], emitted: 3, session });
      },
    },
  });
  t.after(() => server.stop(50));
  const client = clientOf(port, fleet.client);
  t.after(() => {
    client.close();
  });
  const calls = new RingCalls(client, ringName('tale'), generation('7'));
  const { signal } = new AbortController();
  const at = { session: 0, request: 12 };

  left = 3;
  assert.equal((await calls.settleWithin(at, 10_000, signal)).state, 'settled');
  assert.deepEqual(states, ['ending', 'ending', 'ending', 'settled']);
  left = Infinity;
  assert.equal((await calls.settleWithin(at, 1, signal)).state, 'ending', 'a ring that is lost is not waited for');
  await assert.rejects(calls.settle(0, 13, signal), { code: 'REQUEST_UNKNOWN' });
  const cancelled = new AbortController();
  const waiting = calls.settle(0, 12, cancelled.signal);
  cancelled.abort();
  await assert.rejects(waiting, { code: 'CANCELLED' });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestId, ringName, sessionId } from '../../protocol/ids.ts';
import { requestAdmitted, requestEnded, requestSettled } from '../journal/sample-records.ts';
import type { JournalRecord } from '../records.ts';
import { keptRequest, keptSettlement } from './ended-requests.ts';

const asked = { ring: ringName('stories'), session: sessionId(0), request: requestId(1) };

// eslint-disable-next-line @typescript-eslint/require-await
async function* records(...of: readonly JournalRecord[]): AsyncGenerator<JournalRecord> {
  yield* of;
}

test('what the journal says of a settlement is what memory would have said (S3)', async () => {
  const settlement = async (...of: readonly JournalRecord[]) =>
    keptSettlement(await keptRequest(records(...of), asked));
  assert.deepEqual(await settlement(requestAdmitted()), { kind: 'running' });
  assert.deepEqual(await settlement(requestAdmitted(), requestEnded()), { kind: 'ending' });
  const { receipts, emitted } = requestSettled();
  const settled = { kind: 'settled', reason: requestEnded().reason, receipts, emitted };
  assert.deepEqual(await settlement(requestAdmitted(), requestEnded(), requestSettled()), settled);
  await assert.rejects(settlement(), { code: 'REQUEST_UNKNOWN' });
});

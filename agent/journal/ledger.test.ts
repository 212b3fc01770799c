import assert from 'node:assert/strict';
import { test } from 'node:test';

import { loadId, requestId, sessionId } from '../../protocol/ids.ts';
import type { JournalRecord } from '../records.ts';
import { Ledger, admissionBytes, recordBytes } from './ledger.ts';
import { encodeRecord } from './record-codec.ts';
import { loadAdmitted, requestAdmitted, sampleLoad, tokenEmitted } from './sample-records.ts';

const settled: JournalRecord = {
  kind: 'request-settled',
  load: sampleLoad,
  session: sessionId(1),
  request: requestId(1),
  receipts: [],
  emitted: 2,
};

const note = (ledger: Ledger, record: JournalRecord, load: number): void => {
  ledger.note(record, { load, number: load, at: 1_700_000_000 });
};

test('room is kept for what an admitted request may still write, and given back as it writes and ends', () => {
  const ledger = new Ledger();
  note(ledger, loadAdmitted(), 1);
  const loaded = ledger.reservedBytes;
  note(ledger, requestAdmitted(1, { maxTokens: 100 }), 1);
  const admitted = ledger.reservedBytes;
  assert.ok(admitted > loaded + 100 * 56);
  note(ledger, tokenEmitted(0), 1);
  assert.ok(ledger.reservedBytes < admitted);
  note(ledger, settled, 1);
  assert.equal(ledger.reservedBytes, loaded);
  note(ledger, { kind: 'load-ended', load: sampleLoad, by: 'unload' }, 1);
  assert.equal(ledger.reservedBytes, 0);
  assert.deepEqual(ledger.liveLoads(), []);
});

test('a request that emits more than it was let in for eats nothing that was kept for others', () => {
  const ledger = new Ledger();
  note(ledger, loadAdmitted(), 1);
  note(ledger, requestAdmitted(1, { maxTokens: 2 }), 1);
  note(ledger, requestAdmitted(2, { maxTokens: 2 }), 1);
  for (let index = 0; index < 1000; index++) note(ledger, tokenEmitted(index), 1);
  const before = ledger.reservedBytes;
  note(ledger, settled, 1);
  assert.ok(ledger.reservedBytes > 0 && ledger.reservedBytes < before);
  note(ledger, { kind: 'load-ended', load: sampleLoad, by: 'forget' }, 1);
  assert.equal(ledger.reservedBytes, 0);
});

test('an admission counts for at least what its record takes', () => {
  const long = requestAdmitted(1, { prompt: Array.from({ length: 1000 }, (_, id) => tokenEmitted(id).token) });
  for (const record of [loadAdmitted(), requestAdmitted(), long])
    assert.ok(admissionBytes(record) > recordBytes(encodeRecord(record, { number: 1, load: 1, at: 1_700_000_000 })));
});

test('loads that have not ended are told in the order of their admission', () => {
  const ledger = new Ledger();
  const other = loadId('f'.repeat(32));
  note(ledger, loadAdmitted(), 3);
  note(ledger, loadAdmitted(other), 9);
  assert.deepEqual(ledger.liveLoads(), [3, 9]);
  assert.equal(ledger.numberOf(other), 9);
  assert.equal(ledger.loadOf(3), sampleLoad);
});

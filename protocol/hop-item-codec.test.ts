import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decodeItems, encodeItems } from './hop-item-codec.ts';
import { nothingRan, rowsPhases, type HopItem, type RowsItem } from './hop-items.ts';
import { generation, keptIndex, nodeIndex, requestId, sessionId, slotIndex, tokenId } from './ids.ts';
import { defaultSampling } from './sampling.ts';

const of = { session: sessionId(3), request: requestId(300), slot: slotIndex(2) } as const;
const { session, request, slot } = of;

const rowsOf = (change: Partial<RowsItem> = {}): RowsItem => ({
  ...{ kind: 'rows', ...of, step: 7, firstPosition: 12, rowCount: 4, phase: 'decode', samples: true, alone: false },
  ...change,
});

const receipt = {
  ...{ node: nodeIndex(1), sourceGeneration: generation('18446744073709551615'), prefilled: 1, decoded: 2 },
  ...{ reused: 3, recomputed: 4, padding: 5, computeUs: 0xffff_ffff },
};

const items: readonly HopItem[] = [
  { kind: 'open', session, slot },
  { kind: 'begin', ...of, reusedRows: 0, ran: nothingRan, sampling: defaultSampling, history: [], drawn: [] },
  {
    ...{ kind: 'begin', ...of, reusedRows: 9, ran: { prefilled: 5, decoded: 0xffff_ffff } },
    ...{ sampling: { ...defaultSampling, seed: 4, grammar: 'root ::= "ä"' } },
    ...{ history: [1, 2, 3].map(tokenId), drawn: [4, 5].map(tokenId) },
  },
  ...rowsPhases.flatMap((phase) =>
    [true, false].flatMap((samples) => [true, false].map((alone) => rowsOf({ phase, samples, alone }))),
  ),
  { kind: 'truncate', session, slot, length: 8 },
  { kind: 'end', session, request, receipts: [], ran: null },
  { kind: 'end', session, request, receipts: [receipt], ran: { prefilled: 0, decoded: 0, reused: 0 } },
  { kind: 'end', session, request, receipts: [receipt, receipt], ran: { prefilled: 6, decoded: 7, reused: 8 } },
  { kind: 'close', session, slot },
  { kind: 'token', session, request, step: 1, token: tokenId(5) },
  { kind: 'failed', session, request, node: nodeIndex(4), why: 'grammar-dead-end' },
  { kind: 'probe', nonce: 77 },
  { kind: 'keep', session, slot, kept: keptIndex(6), length: 40 },
  ...[true, false].map((takes): HopItem => ({ kind: 'adopt', session, slot, kept: keptIndex(6), length: 30, takes })),
  { kind: 'drop', kept: keptIndex(254) },
];

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

test('items come out as they went in, all kinds together and each by itself', () => {
  assert.deepEqual(decodeItems(viewOf(encodeItems(items)), 0, items.length), items);
  for (const item of items) assert.deepEqual(decodeItems(viewOf(encodeItems([item])), 0, 1), [item]);
});

test('items that are cut short, at every byte, and items too many or too few are refused', () => {
  const bytes = encodeItems(items);
  for (let length = 0; length < bytes.length; length++) {
    assert.throws(() => decodeItems(viewOf(bytes.subarray(0, length)), 0, items.length), { code: 'FRAME_INVALID' });
  }
  for (const count of [items.length - 1, items.length + 1])
    assert.throws(() => decodeItems(viewOf(bytes), 0, count), { code: 'FRAME_INVALID' });
});

test('a phase that there is not is refused', () => {
  const bytes = encodeItems([rowsOf()]);
  const flagsAt = bytes.length - 4;
  assert.equal(bytes[flagsAt], 1 | 4);
  bytes[flagsAt] = 3;
  assert.throws(() => decodeItems(viewOf(bytes), 0, 1), { code: 'FRAME_INVALID' });
});

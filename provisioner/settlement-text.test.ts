import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { SettledStage } from '../protocol/messages.ts';
import { receiptLines, usageOf } from './settlement-text.ts';

const stage = (node: number, change: Partial<SettledStage> = {}): SettledStage => ({
  ...{ node, host: 'ant', firstLayer: node, lastLayer: node, prefilled: 5, decoded: 15, reused: 2 },
  ...{ recomputed: 7, padding: 1, computeMs: 12.34, ...change },
});

test('receipts are a table in ring order, with recomputed rows apart from those that count', () => {
  const [title, ...rows] = receiptLines([stage(1, { host: 'bee' }), stage(0)]).map((line) =>
    line.trim().split(/ {2,}/),
  );
  assert.deepEqual(title, [
    ...['stage', 'host', 'layers', 'prefilled', 'decoded', 'reused', 'recomputed', 'padding', 'ms'],
  ]);
  assert.deepEqual(rows, [
    ['0', 'ant', '0-0', '5', '15', '2', '7', '1', '12.3'],
    ['1', 'bee', '1-1', '5', '15', '2', '7', '1', '12.3'],
  ]);
  assert.deepEqual(receiptLines([]), ['No stage ran anything for it.']);
});

test('usage counts what was asked and answered, never what a loss made a stage run again (S2)', () => {
  const expected = { promptTokens: 7, completionTokens: 16, totalTokens: 23, reusedTokens: 2 };
  assert.deepEqual(usageOf({ emitted: 16, stages: [stage(0), stage(1)] }), expected);
  assert.equal(usageOf({ emitted: 0, stages: [] }).totalTokens, 0);
});

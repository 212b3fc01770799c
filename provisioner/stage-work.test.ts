import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { SettledStage } from '../protocol/messages.ts';
import { firstTokenMs, msPerRow, speedLine, stageWorkLines, tokensPerSecond, type TokenTimes } from './stage-work.ts';

const stage = (node: number, change: Partial<SettledStage> = {}): SettledStage => ({
  ...{ node, host: 'local', firstLayer: node * 2, lastLayer: node * 2 + 1 },
  ...{ prefilled: 5, decoded: 15, reused: 0, recomputed: 0, padding: 3, computeMs: 40, ...change },
});
const none: TokenTimes = { submittedMs: 100, firstMs: null, lastMs: null, tokens: 0 };

describe('what stages did', () => {
  test('stands in ring order, one line each', () => {
    assert.deepEqual(stageWorkLines([stage(1), stage(0)]), [
      'stage  host   layers  rows prefilled  decoded  ms per token',
      '    0  local  0-1                  5       15          2.00',
      '    1  local  2-3                  5       15          2.00',
    ]);
  });

  test('counts padding as no row, and no rows as no time', () => {
    assert.equal(msPerRow(stage(0)), 2);
    assert.equal(msPerRow(stage(0, { recomputed: 20 })), 1);
    assert.equal(msPerRow(stage(0, { prefilled: 0, decoded: 0 })), null);
  });
});

describe("the ring's speed", () => {
  test('is that of the tokens after the first', () => {
    const times = { submittedMs: 100, firstMs: 150, lastMs: 1150, tokens: 11 };
    assert.equal(tokensPerSecond(times), 10);
    assert.equal(firstTokenMs(times), 50);
    assert.equal(speedLine(times), '10.0 tokens per second, first token after 50 ms');
  });

  test('is unknown from a few tokens, which may have come at once', () => {
    assert.equal(tokensPerSecond({ submittedMs: 100, firstMs: 150, lastMs: 151, tokens: 7 }), null);
    assert.equal(tokensPerSecond({ submittedMs: 100, firstMs: 150, lastMs: 220, tokens: 8 }), 100);
  });

  test('is unknown without a second token', () => {
    assert.equal(tokensPerSecond({ ...none, firstMs: 150, lastMs: 150, tokens: 1 }), null);
    assert.equal(firstTokenMs(none), null);
    assert.equal(speedLine(none), 'no token');
  });
});

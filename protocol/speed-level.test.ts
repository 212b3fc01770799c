import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { stretchBetween, type SpeedReading } from './speed-level.ts';

const nothing: SpeedReading = {
  ...{ interTokenSeconds: 0, interTokens: 0, activeSeconds: 0, requestSeconds: 0 },
  ...{ promptTokens: 0, generatedTokens: 0, contextShare: 0 },
};
const some: SpeedReading = {
  ...{ interTokenSeconds: 8, interTokens: 100, activeSeconds: 4, requestSeconds: 10 },
  ...{ promptTokens: 210, generatedTokens: 105, contextShare: 0.25 },
};

suite('a stretch of decoding', () => {
  test('has the level of what ran in it', () => {
    const level = { running: '2', context: '0-25%', prompt: '1-4' };
    assert.deepEqual(stretchBetween(nothing, some), { level, seconds: 8, tokens: 100 });
  });

  test('of many requests with full contexts and long prompts is in the last bands', () => {
    const busy = { ...some, requestSeconds: 400, promptTokens: 9000, contextShare: 1 };
    assert.deepEqual(stretchBetween(nothing, busy)?.level, { running: '17+', context: '75-100%', prompt: '16+' });
  });

  test('is none where nothing was decoded, or the counters began anew', () => {
    assert.equal(stretchBetween(some, some), null);
    assert.equal(stretchBetween(some, nothing), null);
    assert.equal(stretchBetween(nothing, { ...some, interTokens: 0, interTokenSeconds: 0 }), null, 'first tokens only');
  });
});

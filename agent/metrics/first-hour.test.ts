import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { SpeedReading } from '../../protocol/speed-level.ts';
import { FirstHour } from './first-hour.ts';

/** A ring that runs `side` requests side by side, `ms` a token each, and has given `tokens` so far. */
const reading = (tokens: number, seconds: number, change: Partial<SpeedReading> = {}): SpeedReading => ({
  ...{ interTokenSeconds: seconds, interTokens: tokens, activeSeconds: seconds, requestSeconds: seconds },
  ...{ promptTokens: 0, generatedTokens: tokens, contextShare: 0.1, ...change },
});

suite('the first hour of a load', () => {
  test('adds up what was decoded at each level, and tells it when it is enough', () => {
    const hour = new FirstHour();
    hour.look(reading(0, 0));
    hour.look(reading(60, 3));
    assert.deepEqual(hour.known, [], 'sixty tokens say little');
    hour.look(reading(120, 6));
    hour.look(reading(120, 6));
    const level = { running: '1', context: '0-25%', prompt: '0-1' };
    assert.deepEqual(hour.known, [{ level, seconds: 6, tokens: 120 }]);
    hour.look(reading(320, 36, { activeSeconds: 21, contextShare: 0.6 }));
    assert.deepEqual(hour.known[1], {
      level: { running: '2', context: '50-75%', prompt: '0-1' },
      ...{ seconds: 30, tokens: 200 },
    });
  });

  test('knows whether a look would find something', () => {
    const hour = new FirstHour();
    assert.equal(hour.isNews(0), true);
    hour.look(reading(5, 1));
    assert.deepEqual([hour.isNews(5), hour.isNews(6)], [false, true]);
  });
});

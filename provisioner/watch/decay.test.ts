import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { SpeedReading, SpeedStretch } from '../../protocol/speed-level.ts';
import { decayOf, noSpeed, noteSpeed, type SpeedState } from './decay.ts';

const alone = { running: '1', context: '0-25%', prompt: '0-1' };

interface Step {
  readonly tokensPerSecond: number;
  readonly running?: number;
  readonly process?: number;
}

/** Looks two seconds apart, each at the speed of one request that its step says. */
function watched(steps: readonly Step[], from: SpeedState = noSpeed): SpeedState {
  let state = from;
  let seconds = 0;
  let reading: SpeedReading = {
    ...{ interTokenSeconds: 0, interTokens: 0, activeSeconds: 0, requestSeconds: 0 },
    ...{ promptTokens: 0, generatedTokens: 0, contextShare: 0.1 },
  };
  for (const { tokensPerSecond, running = 1, process = 1 } of steps) {
    state = noteSpeed(state, { process, atSeconds: seconds, reading });
    seconds += 2;
    const tokens = 2 * tokensPerSecond * running;
    reading = {
      ...reading,
      interTokenSeconds: reading.interTokenSeconds + (tokens > 0 ? 2 * running : 0),
      interTokens: reading.interTokens + tokens,
      activeSeconds: reading.activeSeconds + (tokens > 0 ? 2 : 0),
      requestSeconds: reading.requestSeconds + (tokens > 0 ? 2 * running : 0),
      generatedTokens: reading.generatedTokens + tokens,
    };
  }
  return noteSpeed(state, { process: steps.at(-1)?.process ?? 1, atSeconds: seconds, reading });
}

const steps = (count: number, step: Step): readonly Step[] => Array.from({ length: count }, () => step);
const hour = (seconds: number, level = alone): readonly SpeedStretch[] => [{ level, seconds, tokens: 1 }];

describe('the decay ratio', () => {
  test('is the speed now against that of the first hour, at the level of now', () => {
    const decay = decayOf(watched(steps(6, { tokensPerSecond: 40 })), hour(0.02));
    assert.ok(decay.kind === 'known' && Math.abs(decay.ratio - 0.8) < 1e-9, JSON.stringify(decay));
    assert.deepEqual([decay.against, decay.level], ['first-hour', alone]);
  });

  test('needs no whole stretch where the first hour is known', () => {
    const decay = decayOf(watched(steps(1, { tokensPerSecond: 40 })), hour(0.02));
    assert.ok(decay.kind === 'known' && Math.abs(decay.ratio - 0.8) < 1e-9, JSON.stringify(decay));
  });

  test('is against the beginning of the watch where no first hour is known, or none at this level', () => {
    const slower = watched([...steps(250, { tokensPerSecond: 50 }), ...steps(250, { tokensPerSecond: 40 })]);
    for (const known of [[], hour(0.02, { ...alone, running: '2' })]) {
      const decay = decayOf(slower, known);
      assert.ok(decay.kind === 'known' && decay.against === 'this-watch');
      assert.ok(Math.abs(decay.ratio - 0.8) < 1e-9, String(decay.ratio));
    }
  });

  test('never compares one load with another', () => {
    const busier = watched([...steps(20, { tokensPerSecond: 50 }), ...steps(20, { tokensPerSecond: 20, running: 4 })]);
    const decay = decayOf(busier, hour(0.02));
    assert.ok(decay.kind === 'known');
    assert.deepEqual([decay.level.running, decay.against, decay.ratio], ['3-4', 'this-watch', 1]);
  });

  test('is not known before enough was decoded', () => {
    assert.deepEqual(decayOf(noSpeed, hour(0.02)), { kind: 'unknown', why: 'nothing-decoded' });
    assert.deepEqual(decayOf(watched(steps(9, { tokensPerSecond: 0 })), hour(0.02)).kind, 'unknown');
    const few = watched(steps(2, { tokensPerSecond: 4 }));
    assert.deepEqual(decayOf(few, hour(0.02)), { kind: 'unknown', why: 'too-little-decoded' });
    assert.deepEqual(decayOf(few, []), { kind: 'unknown', why: 'too-little-decoded' });
  });

  test('survives an agent that starts again: what was before stays, and nothing is counted across', () => {
    const before = watched(steps(20, { tokensPerSecond: 50 }));
    const after = watched(steps(6, { tokensPerSecond: 40, process: 2 }), before);
    const decay = decayOf(after, []);
    assert.ok(decay.kind === 'known' && decay.ratio < 1 && decay.ratio > 0.8, JSON.stringify(decay));
  });
});

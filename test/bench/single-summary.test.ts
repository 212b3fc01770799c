import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { BenchProcess, DecodeRun } from './arm.ts';
import { requireSameTokens, summarizeSingle, type SingleMeasured } from './single-summary.ts';
import { spreadOf } from './statistics.ts';

const run = (ms: number, computeMs: readonly number[], cpuMs: readonly number[]): DecodeRun => ({
  tokens: [4, 2, 9],
  intervalsMs: [ms - 1, ms + 1],
  ...{ computeMs, cpuMs },
});
const process = (role: BenchProcess['role'], name: string): BenchProcess => ({ role, name, pid: 1 });
const stages = [process('stage', 'stage 0'), process('stage', 'stage 1')];

/** In the second round the machine was half as fast. */
const measured: SingleMeasured = {
  rounds: {
    uncut: [run(8, [7.9], [8]), run(16, [15.8], [16])],
    'one agent': [run(10, [4, 4], [1.5, 4, 5]), run(20, [8, 8], [2.5, 8, 9])],
    'two agents': [run(12.5, [4, 4], [0.5, 0.9, 4, 5]), run(25, [8, 8], [0.7, 1.1, 8, 9])],
  },
  processes: {
    uncut: [process('model', 'uncut model')],
    'one agent': [process('agent', 'agent a'), ...stages],
    'two agents': [process('agent', 'agent a'), process('agent', 'agent b'), ...stages],
  },
  links: [
    { source: 0, destination: 1, frames: 9, ackP50Ms: 5, ackP99Ms: 7 },
    { source: 1, destination: 0, frames: 9, ackP50Ms: 0.5, ackP99Ms: 1.5 },
  ],
  network: { p50Ms: spreadOf([0.125]), p99Ms: spreadOf([0.5]) },
};

suite('one session', () => {
  test('is compared with the uncut model, and two agents with one, within a round', () => {
    const { verdicts } = summarizeSingle(measured);
    assert.deepEqual(
      verdicts.map(({ found, target, isMet }) => [found.median, target?.value, isMet]),
      [
        [0.8, 0.98, false],
        [0.8, 0.97, false],
        [2, 1, false],
        // The busier one's median.
        [1, 1, true],
        [0.375, 0.4, true],
        [1, 1.5, true],
      ],
    );
  });

  test('has what a token takes beyond computing, and what the edges between agents add to it', () => {
    const { arms, edgeBetweenAgentsMs } = summarizeSingle(measured);
    assert.deepEqual([arms['one agent'].restMs.least, arms['one agent'].restMs.greatest], [2, 4]);
    assert.deepEqual([edgeBetweenAgentsMs.least, edgeBetweenAgentsMs.greatest], [1.25, 2.5]);
    // Stages of the ring against the uncut model's process: 9 to 8 and 17 to 16.
    assert.deepEqual(arms['one agent'].stageCpuBeyondUncutMs.median, 1);
  });

  test('is no comparison where texts differ', () => {
    requireSameTokens(measured.rounds);
    const [first, second] = measured.rounds.uncut;
    assert.ok(first !== undefined && second !== undefined);
    const other = { ...measured.rounds, uncut: [first, { ...second, tokens: [4, 2, 8] }] };
    assert.throws(() => {
      requireSameTokens(other);
    }, /X1/);
  });
});

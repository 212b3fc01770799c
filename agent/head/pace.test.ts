import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { limits } from '../../protocol/limits.ts';
import { chunkRows, chunkRowsBeside, grouping, observed, stepUs, unknownPace, type Pace } from './pace.ts';

/** Microseconds by rows. */
const paceOf = (steps: Readonly<Record<number, number>>): Pace =>
  Object.entries(steps).reduce((pace, [rows, us]) => observed(pace, { rows: Number(rows), us }), unknownPace);

/** A decode reads all weights, whatever its rows; each of them adds a little. */
const boundByMemory = paceOf({ 1: 10_000, 2: 10_400, 4: 11_200, 8: 12_800, 16: 16_000, 63: 34_800 });
/** Two rows take another kernel than one, and cost three times as much; sixteen take seven times as long as one. */
const dearPairs = paceOf({ 1: 6000, 2: 18_000, 4: 25_000, 8: 30_000, 16: 44_000, 63: 276_000 });

suite('how long a decode takes', () => {
  test('nothing is known before the first one', () => {
    assert.equal(stepUs(unknownPace, 1), null);
    assert.equal(observed(unknownPace, { rows: 0, us: 0 }), unknownPace);
  });

  test('it grows evenly between what was seen, and in proportion beyond', () => {
    const pace = paceOf({ 4: 1000, 16: 4000 });
    assert.equal(stepUs(pace, 1), 1000);
    assert.equal(stepUs(pace, 4), 1000);
    assert.equal(stepUs(pace, 10), 2500);
    assert.equal(stepUs(pace, 48), 12_000);
  });

  test('late samples move it, and a single one does not carry it away', () => {
    let pace = observed(paceOf({ 1: 1000 }), { rows: 1, us: 100_000 });
    assert.ok((stepUs(pace, 1) ?? 0) < 15_000);
    for (let step = 0; step < 100; step += 1) pace = observed(pace, { rows: 1, us: 2000 });
    assert.ok(Math.abs((stepUs(pace, 1) ?? 0) - 2000) < 10);
  });
});

suite('groups of sessions that decode', () => {
  test('there are as many as stages where rows are cheap', () => {
    assert.deepEqual(grouping(boundByMemory, 8, 2), { size: 4, count: 2 });
    assert.deepEqual(grouping(boundByMemory, 9, 4), { size: 3, count: 4 });
    assert.deepEqual(grouping(boundByMemory, 1, 4), { size: 1, count: 1 });
    assert.deepEqual(grouping(boundByMemory, 255, 1), { size: 51, count: 5 });
  });

  test('where a row alone is cheaper than its share, each session goes by itself', () => {
    assert.deepEqual(grouping(dearPairs, 4, 2), { size: 1, count: 4 });
    assert.deepEqual(grouping(dearPairs, 32, 2), { size: 16, count: 2 });
  });

  test('what was not seen yet is tried', () => {
    assert.deepEqual(grouping(paceOf({ 1: 6000 }), 4, 2), { size: 2, count: 2 });
    assert.deepEqual(grouping(unknownPace, 4, 2), { size: 2, count: 2 });
  });
});

suite('a chunk of a prompt beside sessions that decode', () => {
  test('lets a round take as much longer as it may, and is never a row alone (R3)', () => {
    for (const { count, stages } of [
      { count: 1, stages: 1 },
      { count: 1, stages: 4 },
      { count: 3, stages: 2 },
    ]) {
      const roundUs = (rows: number): number => count * 10_000 + (stepUs(boundByMemory, rows) ?? 0);
      const rows = chunkRows(boundByMemory, { size: 1, count }, stages);
      const mostUs = Math.max(count, stages) * 10_000 * limits.slowestBeside;
      assert.ok(roundUs(rows) <= mostUs, `${rows} rows`);
      assert.ok(rows === limits.cpuDecodeRows || roundUs(rows + 1) > mostUs, `${rows} rows`);
    }
    assert.equal(chunkRows(dearPairs, { size: 1, count: 1 }, 1), 2);
    assert.equal(chunkRows(unknownPace, { size: 1, count: 1 }, 2), limits.firstChunkRows);
  });

  test('rides with a group only where it does not hold it up', () => {
    const rows = chunkRowsBeside(boundByMemory, 4);
    assert.ok((stepUs(boundByMemory, 4 + rows) ?? 0) <= 11_200 * limits.slowestBeside && rows > 16, `${rows} rows`);
    assert.equal(chunkRowsBeside(dearPairs, 1), 0);
  });

  test('stays within one shape class', () => {
    const flat = paceOf({ 1: 1000, 63: 1001 });
    assert.equal(chunkRows(flat, { size: 1, count: 1 }, 2), limits.cpuDecodeRows);
    assert.equal(chunkRowsBeside(flat, 60), limits.cpuDecodeRows - 60);
  });
});

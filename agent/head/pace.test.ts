import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { limits } from '../../protocol/limits.ts';
import {
  chunkRows,
  chunkRowsBeside,
  grouping,
  observed,
  stepUs,
  unknownPace,
  type Decoders,
  type Grouping,
  type Pace,
} from './pace.ts';

/** Microseconds by rows. */
const paceOf = (steps: Readonly<Record<number, number>>): Pace =>
  Object.entries(steps).reduce((pace, [rows, us]) => observed(pace, { rows: Number(rows), us }), unknownPace);

/** A decode reads all weights, whatever its rows; each of them adds a little. */
const boundByMemory = paceOf({ 1: 10_000, 2: 10_400, 4: 11_200, 8: 12_800, 16: 16_000, 63: 34_800 });
/** Two rows take another kernel than one, and cost three times as much; sixteen take seven times as long as one. */
const dearPairs = paceOf({ 1: 6000, 2: 18_000, 4: 25_000, 8: 30_000, 16: 44_000, 63: 276_000 });

const together = (size: number, count: number): Grouping => ({ size, count, alone: false });
const alone = (size: number, count: number): Grouping => ({ size, count, alone: true });
const exact = (decoders: number, stages: number): Decoders => ({ decoders, stages, mayBeAlone: false });
const fast = (decoders: number, stages: number): Decoders => ({ decoders, stages, mayBeAlone: true });

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
    assert.deepEqual(grouping(boundByMemory, exact(8, 2)), together(4, 2));
    assert.deepEqual(grouping(boundByMemory, exact(9, 4)), together(3, 4));
    assert.deepEqual(grouping(boundByMemory, exact(1, 4)), together(1, 1));
    assert.deepEqual(grouping(boundByMemory, exact(255, 1)), together(51, 5));
  });

  test('where a row alone is cheaper than its share, each session goes by itself', () => {
    assert.deepEqual(grouping(dearPairs, exact(4, 2)), together(1, 4));
    assert.deepEqual(grouping(dearPairs, exact(32, 2)), together(16, 2));
  });

  test('what was not seen yet is tried', () => {
    assert.deepEqual(grouping(paceOf({ 1: 6000 }), exact(4, 2)), together(2, 2));
    assert.deepEqual(grouping(unknownPace, exact(4, 2)), together(2, 2));
  });
});

suite('groups of rows that may be decoded alone', () => {
  test('are as many as there are stages', () => {
    assert.deepEqual(grouping(dearPairs, fast(1, 2)), together(1, 1));
    assert.deepEqual(grouping(dearPairs, fast(4, 2)), alone(2, 2));
    assert.deepEqual(grouping(dearPairs, fast(6, 4)), alone(2, 4));
  });

  test('are decoded together where that is quicker', () => {
    assert.deepEqual(grouping(boundByMemory, fast(8, 2)), together(4, 2));
    assert.deepEqual(grouping(dearPairs, fast(32, 2)), together(16, 2));
    assert.deepEqual(grouping(dearPairs, fast(8, 2)), together(4, 2), 'four are hardly dearer');
  });

  test('are tried where they were never seen, as those are that go together', () => {
    assert.deepEqual(grouping(paceOf({ 1: 6000 }), fast(4, 2)), together(2, 2));
    assert.deepEqual(grouping(paceOf({ 2: 6000 }), fast(4, 2)), alone(2, 2));
  });

  test('take no rows of a prompt along', () => {
    assert.equal(chunkRowsBeside(boundByMemory, alone(4, 2)), 0);
    // A round of 2 groups of 4 takes 80 ms beside 2 stages: 2.5 times that leave 120 ms for the chunk.
    assert.equal(chunkRows(boundByMemory, alone(4, 2), 2), limits.cpuDecodeRows);
    assert.equal(chunkRows(dearPairs, together(1, 4), 2), 11);
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
      const rows = chunkRows(boundByMemory, together(1, count), stages);
      const mostUs = Math.max(count, stages) * 10_000 * limits.slowestBeside;
      assert.ok(roundUs(rows) <= mostUs, `${rows} rows`);
      assert.ok(rows === limits.cpuDecodeRows || roundUs(rows + 1) > mostUs, `${rows} rows`);
    }
    assert.equal(chunkRows(dearPairs, together(1, 1), 1), 2);
    assert.equal(chunkRows(unknownPace, together(1, 1), 2), limits.firstChunkRows);
  });

  test('rides with a group only where it does not hold it up', () => {
    const rows = chunkRowsBeside(boundByMemory, together(4, 1));
    assert.ok((stepUs(boundByMemory, 4 + rows) ?? 0) <= 11_200 * limits.slowestBeside && rows > 16, `${rows} rows`);
    assert.equal(chunkRowsBeside(dearPairs, together(1, 1)), 0);
  });

  test('stays within one shape class', () => {
    const flat = paceOf({ 1: 1000, 63: 1001 });
    assert.equal(chunkRows(flat, together(1, 1), 2), limits.cpuDecodeRows);
    assert.equal(chunkRowsBeside(flat, together(60, 1)), limits.cpuDecodeRows - 60);
  });
});

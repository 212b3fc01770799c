import assert from 'node:assert/strict';
import { AssertionError } from 'node:assert';
import { suite, test } from 'node:test';

import {
  countText,
  journalArms,
  ringRound,
  type JournalMeasurement,
  type MeasuredRing,
} from './journal-measurement.ts';
import { summarizeJournal } from './journal-summary.ts';

const tokens = [[4, 2]];
const noCalls = { calls: 9, listings: [], looks: [], looksAtOpenFiles: 0, opened: [], writes: 5, syncs: 3 };
const arms = journalArms(1_000_000, false);

/** Rounds of 100, 50 and 200 tokens/s with an empty journal, as a machine is busy; others by their factor. */
function ring(index: number, factor: number): MeasuredRing {
  const arm = arms[index];
  assert.ok(arm !== undefined);
  const rounds = [100, 50, 200].map((speed) => ({ tokens, tokensPerSecond: speed * factor, cpuMs: 2 }));
  return { arm, held: { before: arm.records + 7, after: arm.records + 100 }, rounds };
}

function measured(changes: Partial<JournalMeasurement> = {}): JournalMeasurement {
  const bare = (records: number, isOnDisk: boolean, speed: number) => ({
    arm: { name: `${records}`, records, isOnDisk },
    held: { before: records + 2, after: records + 42 },
    appendsPerSecond: [speed, speed * 2, speed * 3],
    cpuMs: [1, 1, 1],
  });
  return {
    rings: [1, 1.02, 1, 0.995, 0.98, 1.01].map((factor, index) => ring(index, factor)),
    appends: [bare(0, true, 100), bare(1_000_000, true, 96), bare(0, false, 1000), bare(1_000_000, false, 940)],
    trace: { tokens: 100, arm: { name: '1 M', records: 1_000_000, isOnDisk: true }, calls: noCalls },
    ...changes,
  };
}

suite('the journal’s figures', () => {
  test('are ratios within a round, each to the journal that is named', () => {
    const { ratios, verdicts } = summarizeJournal(measured());
    assert.deepEqual(
      ratios.map(({ name, spread }) => `${name}: ${spread.median.toFixed(3)} of ${spread.runs}`),
      [
        'decode, empty once more / empty (chance): 1.020 of 3',
        'decode, 10 k records / empty: 1.000 of 3',
        'decode, 100 k records / empty: 0.995 of 3',
        'decode, 1 M records / empty: 0.980 of 3',
        'decode, empty on disk / in memory: 0.990 of 3',
        'appends on disk, 1 M records / empty: 0.960 of 3',
        'appends in memory, 1 M records / empty: 0.940 of 3',
      ],
    );
    assert.deepEqual(
      verdicts.map(({ target, isMet }) => [target?.value, isMet]),
      [
        [0.99, true],
        [0.99, true],
        [0.99, false],
        [0.98, true],
        [0.95, true],
        [0.95, false],
        [0, true],
        [0, true],
      ],
    );
  });

  test('miss their targets with one listing, or one look at the folder', () => {
    const calls = { ...noCalls, listings: ['getdents64'], looks: ['stat'] };
    const { verdicts } = summarizeJournal(measured({ trace: { ...measured().trace, calls } }));
    assert.deepEqual(
      verdicts.slice(-2).map(({ found, isMet }) => [found.median, isMet]),
      [
        [1, false],
        [1, false],
      ],
    );
  });

  test('are none when records have left a journal, or arms did not do the same work', () => {
    const rings = measured().rings.slice(0, 5);
    const shrunk = { ...ring(5, 1), held: { before: 7, after: 6 } };
    assert.throws(() => summarizeJournal(measured({ rings: [...rings, shrunk] })), AssertionError);
    const full = ring(4, 1);
    const emptied = { ...full, held: { before: 900_000, after: 1_000_100 } };
    assert.throws(
      () => summarizeJournal(measured({ rings: [...rings.slice(0, 4), emptied, ring(5, 1)] })),
      AssertionError,
    );
    const other = {
      ...ring(5, 1),
      rounds: [{ tokens: [[4, 3]], tokensPerSecond: 1, cpuMs: 2 }, ...ring(5, 1).rounds.slice(1)],
    };
    assert.throws(() => summarizeJournal(measured({ rings: [...rings, other] })), AssertionError);
  });

  test('of a round are those of its stretches together', () => {
    const one = { tokens: [4, 2, 9], intervalsMs: [10, 20], cpuMs: 30 };
    assert.deepEqual(ringRound([one, { ...one, intervalsMs: [30, 40], cpuMs: 0 }]), {
      tokens: [one.tokens, one.tokens],
      tokensPerSecond: 40,
      cpuMs: 5,
    });
  });

  test('say counts as people do', () => {
    assert.deepEqual([25, 2500, 10_000, 1_000_000].map(countText), ['25', '2.5 k', '10 k', '1 M']);
  });

  test('are of few arms in the short form', () => {
    assert.deepEqual(
      journalArms(2500, true).map(({ records, isOnDisk }) => [records, isOnDisk]),
      [
        [0, true],
        [2500, true],
        [0, false],
      ],
    );
  });
});

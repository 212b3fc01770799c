import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cpusText } from '../../protocol/inventory.ts';
import { rangesOfCpus } from '../../protocol/cpu-range.ts';
import type { CpuGroup } from '../../protocol/cpu-topology.ts';
import { packCores } from './core-packing.ts';

/** Groups of so many one-thread cores on these NUMA nodes, numbered through. */
function groupsOf(...sizes: readonly (readonly [cores: number, numaNode: number])[]): readonly CpuGroup[] {
  let next = 0;
  return sizes.map(([cores, numaNode]) => ({
    ...{ numaNode, capacity: 1024 },
    cores: Array.from({ length: cores }, () => [next++]),
  }));
}

const packed = (groups: readonly CpuGroup[], ...wishes: readonly number[]): readonly string[] | null =>
  packCores(groups, wishes)?.map((cores) => cpusText(rangesOfCpus(cores.flat()))) ?? null;

test('stages lie side by side, each on cores of its own', () => {
  assert.deepEqual(packed(groupsOf([8, 0]), 4, 3), ['0-3', '4-6']);
  assert.deepEqual(packed(groupsOf([8, 0]), 3, 4), ['4-6', '0-3'], 'the largest is placed first');
});

test('a stage stays in one cache where one has room, the tightest one', () => {
  assert.deepEqual(packed(groupsOf([8, 0], [4, 0]), 4), ['8-11']);
  assert.deepEqual(packed(groupsOf([4, 0], [4, 0]), 3, 3), ['0-2', '4-6']);
  assert.deepEqual(packed(groupsOf([8, 0], [8, 1]), 8, 5, 3), ['0-7', '8-12', '13-15']);
});

test('else in one NUMA node, in as few caches as will do', () => {
  assert.deepEqual(packed(groupsOf([4, 0], [4, 1], [4, 1]), 6), ['4-9']);
  assert.deepEqual(packed(groupsOf([2, 0], [4, 0]), 5), ['0,2-5']);
});

test('else across nodes', () => {
  assert.deepEqual(packed(groupsOf([4, 0], [4, 1]), 7), ['0-6']);
});

test('too few cores for all are none for anyone', () => {
  assert.equal(packed(groupsOf([4, 0]), 3, 2), null);
  assert.deepEqual(packed(groupsOf([4, 0])), []);
});

test('a core is taken with all its threads', () => {
  const groups = [
    {
      numaNode: 0,
      capacity: 1024,
      cores: [
        [0, 2],
        [1, 3],
      ],
    },
  ];
  assert.deepEqual(packed(groups, 1, 1), ['0,2', '1,3']);
});

test('what is free is not changed by being shared out', () => {
  const groups = groupsOf([4, 0]);
  packed(groups, 4);
  assert.equal(groups[0]?.cores.length, 4);
});

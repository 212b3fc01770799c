import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chooser } from '../../test/fixture/chooser.ts';
import { overloadsOf, type CpuClaim } from './cpu-fit.ts';

const claim = (name: string, threads: number, ...cpus: readonly number[]): CpuClaim => ({
  ...{ name, threads },
  cpus: new Set(cpus),
});
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_none, cpu) => cpu);

/** `a b: 0 1 2`: who is too much for which CPUs. */
const told = (cpus: readonly number[], ...claims: readonly CpuClaim[]): readonly string[] =>
  overloadsOf(cpus, claims).map(
    (overload) => `${overload.claims.map(({ name }) => name).join(' ')}: ${overload.cpus.join(' ')}`,
  );

const four = upTo(4);

test('stages with a CPU for each thread are not complained about', () => {
  assert.deepEqual(told(four), []);
  assert.deepEqual(told(four, claim('a', 2, ...four), claim('b', 2, ...four)), []);
  assert.deepEqual(told(four, claim('a', 2, 0, 1), claim('b', 2, ...four)), [], 'b finds what a leaves');
});

test('more threads than CPUs are too much, where one stage has several', () => {
  assert.deepEqual(told(four, claim('a', 5, ...four)), ['a: 0 1 2 3']);
  assert.deepEqual(told(four, claim('a', 2, ...four), claim('b', 3, ...four)), ['a b: 0 1 2 3']);
  assert.deepEqual(told(four, claim('a', 1, ...four), claim('b', 4, ...four)), ['a b: 0 1 2 3']);
});

test('stages with one thread share, as many as there are', () => {
  assert.deepEqual(told([0], claim('a', 1, 0), claim('b', 1, 0), claim('c', 1, 0)), []);
  const single = [claim('b', 1, 3), claim('c', 1, 3), claim('d', 1, 3)];
  assert.deepEqual(told(four, claim('a', 3, 0, 1, 2), ...single), [], 'where they keep off the others');
  assert.deepEqual(told(four, claim('a', 3, ...four), ...single), [], 'and where the others can keep off them');
  assert.deepEqual(told(four, claim('a', 4, ...four), ...single), ['a b c d: 0 1 2 3']);
});

test('only those who compete for the same CPUs are named', () => {
  const apart = [claim('a', 2, 0, 1), claim('b', 2, 0, 1), claim('c', 2, 2, 3), claim('d', 1, 2, 3)];
  assert.deepEqual(told(four, ...apart), ['a b: 0 1', 'c d: 2 3']);
  assert.deepEqual(told(four, claim('a', 2, 0), claim('b', 2, 2, 3)), ['a: 0']);
});

test('who has a choice makes way, over several others', () => {
  const chain = [claim('a', 2, 0, 1, 2), claim('b', 2, 2, 3, 4), claim('c', 2, 4, 5, 6), claim('d', 1, 0)];
  assert.deepEqual(told(upTo(7), ...chain), [], 'c moves up for b, b for a, a for d');
  assert.deepEqual(told(upTo(7), ...chain, claim('e', 1, 6)), ['a b c d e: 0 1 2 3 4 5 6']);
  assert.deepEqual(told(upTo(7), ...chain, claim('e', 2, 6)), ['e: 6'], 'that is too much by itself');
});

test('CPUs that the machine does not have count for nothing', () => {
  assert.deepEqual(told([0, 1], claim('a', 2, 1, 2)), ['a: 1']);
});

test('whatever the claims are, an overload is one, and none is missed', () => {
  const choose = chooser(7);
  for (let round = 0; round < 2000; round += 1) {
    const cpus = upTo(1 + choose(6));
    const claims = upTo(1 + choose(5)).map((index) => {
      const own = cpus.filter(() => choose(3) > 0);
      return claim(`s${index}`, 1 + choose(3), ...(own.length === 0 ? cpus : own));
    });
    const overloads = overloadsOf(cpus, claims);
    for (const overload of overloads) assert.ok(isTooMuch(overload.claims), show(claims));
    for (const overload of overloads) assert.ok(overload.claims.some(({ threads }) => threads > 1));
    const subsets = upTo(2 ** claims.length).map((bits) =>
      claims.filter((_claim, index) => ((bits >> index) & 1) === 1),
    );
    if (!subsets.some(isTooMuch)) assert.deepEqual(overloads, [], show(claims));
    const wide = subsets.some((subset) => isTooMuch(subset) && subset.every(({ threads }) => threads > 1));
    if (wide) assert.notDeepEqual(overloads, [], show(claims));
    const spoilt = subsets.filter(isTooMuch).filter((subset) => !hasLess(subset));
    const isSpoilt = spoilt.some((subset) => subset.some(({ threads }) => threads > 1));
    if (isSpoilt) assert.notDeepEqual(overloads, [], show(claims));
  }
});

function isTooMuch(claims: readonly CpuClaim[]): boolean {
  const cpus = new Set(claims.flatMap((one) => [...one.cpus]));
  return claims.reduce((sum, { threads }) => sum + threads, 0) > cpus.size;
}

/** Whether some of the claims are too much by themselves. */
const hasLess = (claims: readonly CpuClaim[]): boolean =>
  upTo(2 ** claims.length - 1).some((bits) => isTooMuch(claims.filter((_claim, index) => ((bits >> index) & 1) === 1)));

const show = (claims: readonly CpuClaim[]): string =>
  claims.map(({ name, threads, cpus }) => `${name} ${threads} on ${[...cpus].join(',')}`).join('; ');

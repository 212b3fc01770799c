import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { hostName, loadId, ringName, sliceId, type HostName } from '../protocol/ids.ts';
import { judgeSlices, sliceLines, type HeldSlice, type SlicePlace } from './slice-uses.ts';

const ant = hostName('ant');
const bee = hostName('bee');
const id = (digit: string) => sliceId(digit.repeat(64));
const held = (digit: string, ...rings: string[]): HeldSlice => ({ id: id(digit), bytes: 5e6, lastUsedMs: 0, rings });
const place = (
  host: HostName | null,
  slices: readonly HeldSlice[],
  emptyLoads: readonly string[] = [],
): SlicePlace => ({
  ...{ kind: 'read', host, slices, unfinishedBytes: 0, emptyLoads },
});
const load = loadId('0'.repeat(32));
type Kept = Parameters<typeof judgeSlices>[1][number];
const kept: Kept = { loadId: load, phase: 'ready', plan: { ring: ringName('tales') }, slices: [id('1'), id('2')] };
const fates = (places: readonly SlicePlace[], files = [kept]): string =>
  judgeSlices(places, files)
    .map(({ host, slice, fate }) => `${host ?? 'here'} ${slice.id.slice(0, 1)} ${fate}`)
    .join(', ');

test('a slice that a loaded ring or a kept plan uses stays, another may go', () => {
  assert.equal(
    fates([place(ant, [held('1'), held('3'), held('4', 'songs')])]),
    'ant 1 used, ant 3 prunable, ant 4 used',
  );
  assert.equal(fates([place(ant, [held('1')])], []), 'ant 1 prunable');
});

test('the slices of a ring that is unloaded, or never stood, may go', () => {
  for (const phase of ['unloaded', 'failed'] as const)
    assert.equal(fates([place(ant, [held('1')])], [{ ...kept, phase }]), 'ant 1 prunable');
  assert.equal(fates([place(ant, [held('1')])], [{ ...kept, phase: 'loading' }]), 'ant 1 used');
});

test('a slice that another host has loaded stays here too: they may share the folder', () => {
  assert.equal(
    fates([place(ant, [held('3', 'songs')]), place(bee, [held('3')]), place(null, [held('3'), held('5')])]),
    'ant 3 used, bee 3 used, here 3 used, here 5 prunable',
  );
});

test('a host whose ring is to come back is pruned only where its slices are known from here', () => {
  assert.equal(fates([place(ant, [held('3')], [load])]), 'ant 3 prunable');
  const elsewhere = loadId('f'.repeat(32));
  assert.equal(fates([place(ant, [held('1'), held('3')], [load, elsewhere])]), 'ant 1 used, ant 3 unsure');
  assert.equal(fates([place(ant, [held('3')], [load])], [{ ...kept, slices: [] }]), 'ant 3 unsure');
});

test('a host that does not answer has nothing that is judged', () => {
  const failed: SlicePlace = { kind: 'failed', host: ant, error: new P4Error('AGENT_UNREACHABLE') };
  assert.equal(fates([failed, place(bee, [held('3')])]), 'bee 3 prunable');
});

test('the table says who uses what', () => {
  const places = [
    { ...place(ant, [held('1', 'tales'), held('2'), held('3')]), unfinishedBytes: 7e6 } as const,
    place(null, []),
  ];
  assert.deepEqual(sliceLines(places, judgeSlices(places, [kept])), [
    'host  slice           size  last used   used by',
    'ant   111111111111  5.0 MB  1970-01-01  ring tales',
    'ant   222222222222  5.0 MB  1970-01-01  the plan of ring tales',
    'ant   333333333333  5.0 MB  1970-01-01  nothing',
    'ant: 7.0 MB of unfinished slices',
  ]);
  assert.deepEqual(sliceLines([place(ant, [])], []), ['No slices.']);
});

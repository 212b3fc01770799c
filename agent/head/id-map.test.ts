import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sessionId, type SessionId } from '../../protocol/ids.ts';
import { IdMap } from './id-map.ts';

const empty = IdMap.of<SessionId, string>([]);

test('a change makes a new map and leaves the former as it was', () => {
  const one = empty.with(sessionId(5), 'five');
  const two = one.with(sessionId(3), 'three').with(sessionId(5), 'FIVE');
  const three = two.without(sessionId(5));
  assert.deepEqual([...empty], []);
  assert.deepEqual([...one], [[5, 'five']]);
  assert.deepEqual(
    [...two],
    [
      [3, 'three'],
      [5, 'FIVE'],
    ],
  );
  assert.deepEqual([...three], [[3, 'three']]);
  assert.deepEqual(
    [two.size, two.get(sessionId(5)), two.get(sessionId(4)), two.has(sessionId(3))],
    [2, 'FIVE', undefined, true],
  );
  assert.equal(three.without(sessionId(9)), three);
});

test('it holds what a Map holds after the same changes, in the order of the ids', () => {
  let seed = 7;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor(seed / 2 ** 16) % below;
  };
  const model = new Map<SessionId, string>();
  let map = empty;
  for (let change = 0; change < 2000; change++) {
    const id = sessionId(next(40));
    if (next(3) === 0) {
      model.delete(id);
      map = map.without(id);
    } else {
      model.set(id, String(change));
      map = map.with(id, String(change));
    }
    const expected = [...model].sort(([a], [b]) => a - b);
    assert.deepEqual([...map], expected);
    assert.deepEqual(
      [...map.keys()],
      expected.map(([key]) => key),
    );
    assert.deepEqual(
      [...map.values()],
      expected.map(([, value]) => value),
    );
    assert.equal(map.size, model.size);
    for (let asked = 0; asked < 42; asked++) {
      assert.equal(map.get(sessionId(asked)), model.get(sessionId(asked)));
      assert.equal(map.has(sessionId(asked)), model.has(sessionId(asked)));
    }
  }
  const seen: [SessionId, string][] = [];
  map.forEach((value, id) => seen.push([id, value]));
  assert.deepEqual(seen, [...map]);
  assert.deepEqual([...IdMap.of([...map].reverse())], [...map]);
});

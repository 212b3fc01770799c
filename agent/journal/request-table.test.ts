import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RequestTable } from './request-table.ts';

const ids = (table: RequestTable): number[] =>
  Array.from({ length: table.count }, (_, index) => table.at(index).request);

test('a request is found by its id among many, with what is known of it', () => {
  const table = new RequestTable();
  for (let request = 1; request <= 5000; request++) table.admitted(request, request % 7, request * 100);
  table.ended(4000, 3, { number: 900_000, at: 1_700_000_000 });
  table.settled(4000, 3, { number: 2 ** 40, at: 1_700_000_001 });
  assert.deepEqual(table.find(4000), {
    ...{ request: 4000, session: 3, text: 400_000, isWhole: true },
    ...{ ended: 900_000, settled: 2 ** 40, endedAt: 1_700_000_001 },
  });
  assert.equal(table.find(3999)?.ended, 0);
  for (const absent of [0, 5001, 4_000_000_000]) assert.equal(table.find(absent), null);
});

test('endings whose admission has gone come in any order and are found', () => {
  const table = new RequestTable();
  for (const request of [7, 3, 9, 1, 8, 2]) table.ended(request, 1, { number: request, at: 5 });
  table.admitted(10, 1, 10);
  assert.deepEqual(ids(table), [1, 2, 3, 7, 8, 9, 10]);
  assert.deepEqual([table.find(7)?.isWhole, table.find(10)?.isWhole], [false, true]);
  assert.equal(table.indexFrom(4), 3);
});

test('what is left over of a request is known by its first record, and is not whole', () => {
  const table = new RequestTable();
  table.leftOver(5, 2, 77);
  table.leftOver(5, 2, 78);
  assert.deepEqual(table.find(5), {
    request: 5,
    session: 2,
    text: 77,
    isWhole: false,
    ended: 0,
    settled: 0,
    endedAt: 0,
  });
});

test('requests are taken out, the others stay as they are', () => {
  const table = new RequestTable();
  for (let request = 1; request <= 1000; request++) table.admitted(request, 1, request * 2);
  table.textGone(990);
  assert.equal(table.find(990)?.isWhole, false);
  table.drop((request) => request <= 980 || request === 999, { from: 0, to: 990 });
  assert.deepEqual(
    ids(table),
    Array.from({ length: 20 }, (_, index) => 981 + index),
  );
  assert.equal(table.find(990)?.text, 0);
  assert.equal(table.find(1000)?.text, 2000);
  table.admitted(1001, 1, 5000);
  assert.equal(table.find(1001)?.text, 5000);
});

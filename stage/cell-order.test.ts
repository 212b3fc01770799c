import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CellOrder } from './cell-order.ts';

/** Cells in order, one letter a sequence. */
function orderOf(cells: string): CellOrder {
  const order = new CellOrder(64);
  for (const cell of cells) order.append(cell.charCodeAt(0));
  return order;
}

const textOf = (order: CellOrder): string =>
  order
    .displaced()
    .map(({ sequence, rows }) => String.fromCharCode(sequence) + String(rows))
    .join(' ');

test('a cache without holes displaces nobody, nor does one whose last rows are gone', () => {
  const order = orderOf('aabb');
  assert.equal(textOf(order), '');
  order.remove('b'.charCodeAt(0), 1);
  assert.equal(textOf(order), '');
  order.remove('b'.charCodeAt(0), 0);
  assert.equal(textOf(order), '');
});

test('rows behind a hole are displaced, and whoever is behind what they leave', () => {
  const order = orderOf('ddcaabbc');
  order.remove('b'.charCodeAt(0), 0);
  // c has a row behind the hole; without its row in front, a is behind a hole as well; d is in front of all.
  assert.equal(textOf(order), 'c2 a2');
  order.settle(order.displaced());
  assert.equal(textOf(order), '');
  order.remove('c'.charCodeAt(0), 0);
  assert.equal(textOf(order), 'a2');
});

test('a sequence that loses its last rows displaces those behind', () => {
  const order = orderOf('aaab');
  order.remove('a'.charCodeAt(0), 1);
  assert.equal(textOf(order), 'b1');
  assert.throws(() => {
    order.append(1);
  });
});

test('a cache that was cleared is filled from its first cell on', () => {
  const order = orderOf('aabb');
  order.remove('a'.charCodeAt(0), 0);
  order.clear();
  assert.equal(textOf(order), '');
  for (let row = 0; row < 64; row++) order.append(7);
});

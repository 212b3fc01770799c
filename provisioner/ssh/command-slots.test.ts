import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { CommandSlots } from './command-slots.ts';

test('no more than allowed hold a place, and the others come in their order', async () => {
  const slots = new CommandSlots(2);
  const order: number[] = [];
  const held = [await slots.take(undefined), await slots.take(undefined)];
  const waiting = [1, 2, 3].map(async (index) => {
    const release = await slots.take(undefined);
    order.push(index);
    return release;
  });
  assert.deepEqual(order, []);
  held[0]?.();
  held[0]?.();
  const first = await waiting[0];
  assert.deepEqual(order, [1]);
  held[1]?.();
  await waiting[1];
  assert.deepEqual(order, [1, 2]);
  first?.();
  await waiting[2];
  assert.deepEqual(order, [1, 2, 3]);
});

test('who gives up leaves the queue, and the number can be lowered', async () => {
  const slots = new CommandSlots(3);
  slots.allow(1);
  const release = await slots.take(undefined);
  const controller = new AbortController();
  const impatient = slots.take(controller.signal);
  const patient = slots.take(undefined);
  controller.abort(new P4Error('CANCELLED'));
  await assert.rejects(impatient, (error: unknown) => error instanceof P4Error && error.code === 'CANCELLED');
  await assert.rejects(slots.take(controller.signal));
  release();
  await patient;
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from './errors.ts';
import { wireOf, type HiddenState } from './hidden-state.ts';
import { decodeFrame, decodeHeader, encodeFrame, FrameRoom, requireWire, type FrameContent } from './hop-frame.ts';
import type { HopItem, RowsItem } from './hop-items.ts';
import { generation, nodeIndex, requestId, sessionId, slotIndex } from './ids.ts';

const width = 5;
const rows = 3;

const rowsItem: RowsItem = {
  kind: 'rows',
  ...{ session: sessionId(1), request: requestId(2), slot: slotIndex(0), step: 0, firstPosition: 0 },
  ...{ rowCount: rows, phase: 'prefill', samples: true, alone: false },
};

const content = {
  ...{ source: nodeIndex(0), destination: nodeIndex(1), generation: generation('17592186044417'), number: 9n },
  ...{ completes: 2, slowest: { rows: 3, us: 1234 }, items: [rowsItem], tokens: Uint32Array.of(7, 8, 9) },
};
const floats: FrameContent = {
  ...content,
  hidden: Float32Array.from({ length: rows * width }, (_, at) => at / 3),
};
const halves: FrameContent = {
  ...content,
  hidden: {
    halves: Uint16Array.from({ length: rows * width }, (_, at) => 0x3c00 + at),
    exponents: Uint8Array.of(0, 3, 0),
  },
};

const isInvalid =
  (field: string) =>
  (error: unknown): boolean =>
    error instanceof P4Error && error.code === 'FRAME_INVALID' && error.facts['field'] === field;

test('a frame of either type comes back as it was, and says its type in the header', () => {
  for (const [frame, wire] of [
    [floats, 'f32'],
    [halves, 'f16'],
  ] as const) {
    const bytes = encodeFrame(frame);
    assert.deepEqual(decodeFrame(bytes), { ...frame, rows, width, wire });
    assert.equal(decodeHeader(bytes).wire, wire);
    // From the middle of another buffer, where nothing is aligned, too.
    const elsewhere = new Uint8Array(bytes.length + 1);
    elsewhere.set(bytes, 1);
    assert.deepEqual(decodeFrame(elsewhere.subarray(1)), { ...frame, rows, width, wire });
  }
  const none = encodeFrame({ ...content, hidden: null });
  assert.equal(decodeHeader(none).wire, 'f32');
  assert.equal(decodeFrame(none).hidden, null);
});

test('a hidden state in float16 has half the bytes, and exponents', () => {
  const bytesOf = (frame: FrameContent): number =>
    encodeFrame(frame).length - encodeFrame({ ...frame, hidden: null }).length;
  assert.equal(bytesOf(floats), rows * width * 4);
  assert.equal(bytesOf(halves), rows * width * 2 + 16);
});

test('a hidden state is not copied when its frame is taken apart', () => {
  const bytes = encodeFrame(halves);
  const { hidden } = decodeFrame(bytes);
  assert.ok(hidden !== null && !(hidden instanceof Float32Array));
  assert.equal(hidden.halves.buffer, bytes.buffer);
  assert.equal(hidden.exponents.buffer, bytes.buffer);
});

test('a type that is unknown, or that nothing is of, is refused, and so is a length that belongs to another type', () => {
  const changed = (frame: FrameContent, type: number): Uint8Array => {
    const bytes = encodeFrame(frame);
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(52, type, true);
    return bytes;
  };
  for (const type of [2, 255, 0xffff_ffff]) {
    assert.throws(() => decodeHeader(changed(floats, type)), isInvalid('hidden state type'));
    assert.throws(() => decodeFrame(changed(halves, type)), isInvalid('hidden state type'));
  }
  assert.throws(() => decodeFrame(changed({ ...content, hidden: null }, 1)), isInvalid('hidden state type'));
  assert.throws(() => decodeFrame(changed(floats, 1)), isInvalid('length'));
  assert.throws(() => decodeFrame(changed(halves, 0)), isInvalid('length'));
});

test("a frame of another type than its load's is refused; one without hidden state is of every load", () => {
  const header = (frame: FrameContent) => decodeHeader(encodeFrame(frame));
  assert.throws(() => { requireWire(header(floats), 'f16'); }, isInvalid('hidden state type')); // prettier-ignore
  assert.throws(() => { requireWire(header(halves), 'f32'); }, isInvalid('hidden state type')); // prettier-ignore
  requireWire(header(floats), 'f32');
  requireWire(header(halves), 'f16');
  for (const wire of ['f32', 'f16'] as const) requireWire(header({ ...content, hidden: null }), wire);
});

test('a frame is made around the hidden state that lies in its room, unless its items need more', () => {
  for (const { hidden } of [floats, halves]) {
    assert.ok(hidden !== null);
    const made = (items: readonly HopItem[], other: HiddenState | null = null): [Uint8Array, Uint8Array, boolean] => {
      const room = new FrameRoom({ rows, width, wire: wireOf(hidden) });
      new Uint8Array(room.bytes.buffer, 4).fill(0xaa);
      fill(room.hidden, hidden);
      const expected = encodeFrame({ ...content, items, hidden: other ?? hidden });
      const found = encodeFrame({ ...content, items, hidden: other ?? room.hidden, room });
      return [found, expected, found.buffer === room.bytes.buffer];
    };
    const many: HopItem[] = Array.from({ length: 200 }, (_, nonce) => ({ kind: 'probe', nonce }));
    for (const [items, other, isInPlace] of [
      [[rowsItem], null, true],
      [[rowsItem, ...many], null, false],
      [[rowsItem], hidden, false],
    ] as const) {
      const [found, expected, inPlace] = made(items, other);
      assert.equal(Buffer.compare(found, expected), 0);
      assert.equal(inPlace, isInPlace);
      assert.equal(new DataView(found.buffer).getUint32(0, true), found.length, 'its length stands before it');
    }
  }
});

function fill(into: HiddenState, from: HiddenState): void {
  if (from instanceof Float32Array && into instanceof Float32Array) into.set(from);
  else if (!(from instanceof Float32Array) && !(into instanceof Float32Array)) {
    into.halves.set(from.halves);
    into.exponents.set(from.exponents);
  } else assert.fail('two types');
}

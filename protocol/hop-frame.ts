/**
 * The frame that carries hop items, token ids and hidden states, on a stage's socket and between agents alike.
 *
 * Layout, little-endian:
 *
 *     0   u32      magic "p4h1"
 *     4   u16      source node      6   u16  destination node
 *     8   u64      generation (G3)
 *     16  u64      number of the frame on its link, from 1
 *     24  u32      rows             28  u32  width: values of one row's hidden state, 0 for none
 *     32  u32      item count       36  u32  bytes of the items
 *     40  u32      completes: input frames that a stage has finished with this output
 *     44  u32      slowest decode of its rows so far on its way round: microseconds
 *     48  u32      slowest decode: rows in it
 *     52  u32      type of the hidden state: 0 for float32 and for none, 1 for float16        56  2 × u32  0
 *     64  u32 × rows                token ids, padded to 16 bytes
 *         u8 × rows                 float16 alone: exponents of the rows (hidden-state.ts), padded to 16 bytes
 *         f32 or f16 × rows × width hidden state, row-major, rows in batch order (E3)
 *         items
 *
 * Whoever forwards a frame reads its header alone.
 */
import { assert } from './assert.ts';
import { P4Error } from './errors.ts';
import { hiddenLength, wireOf, type HiddenState } from './hidden-state.ts';
import { decodeItems, encodeItems } from './hop-item-codec.ts';
import type { HopItem } from './hop-items.ts';
import { nodeIndex, type Generation, type NodeIndex } from './ids.ts';
import { messageRoom, shortenedRoom } from './length-prefix.ts';
import { limits } from './limits.ts';
import { wireTypes, type WireType } from './plan.ts';

/** A decode of a stage. */
export interface StepTime {
  /** 0 where there was none. */
  readonly rows: number;
  /** Microseconds, at most 2^32 - 1. */
  readonly us: number;
}

export const noStep: StepTime = { rows: 0, us: 0 };

export interface FrameHeader {
  readonly source: NodeIndex;
  readonly destination: NodeIndex;
  readonly generation: Generation;
  readonly number: bigint;
  readonly rows: number;
  readonly width: number;
  /** Of the hidden state; `f32` where there is none. */
  readonly wire: WireType;
  readonly completes: number;
  /** Of the decodes that rows of this frame, or of those it came from, were in: the one that took longest. */
  readonly slowest: StepTime;
}

/** A frame taken apart. `tokens` has `rows` entries; `hidden` has `rows * width` values, or is `null` when width is 0. */
export interface Frame extends FrameHeader {
  readonly items: readonly HopItem[];
  readonly tokens: Uint32Array;
  readonly hidden: HiddenState | null;
}

/** What `encodeFrame` needs; rows, width and type follow from `tokens` and `hidden`. */
export interface FrameContent extends Omit<Frame, 'rows' | 'width' | 'wire'> {
  /** The frame is made in it, and its hidden state not copied, where that lies there. */
  readonly room?: FrameRoom | null;
}

const magic = 0x3168_3470;
const headerBytes = 64;
/** Most frames have fewer bytes of items; those that have more are made elsewhere. */
const itemRoomBytes = 2048;

type FrameShape = Pick<FrameHeader, 'rows' | 'width' | 'wire'>;

/** Room for one frame of so many rows: their hidden state is written where it is sent from, before the items are known. */
export class FrameRoom {
  /** To be filled. */
  readonly hidden: HiddenState;
  readonly bytes: Uint8Array<ArrayBuffer>;

  constructor(shape: FrameShape) {
    const at = layoutOf(shape);
    this.bytes = messageRoom(at.items + itemRoomBytes);
    this.hidden = hiddenAt(this.bytes, shape, at);
  }
}

/** @returns bytes behind their length, aligned so that `decodeFrame` maps them without copying */
export function encodeFrame(frame: FrameContent): Uint8Array<ArrayBuffer> {
  const shape = shapeOf(frame);
  const { rows, width, wire } = shape;
  const items = encodeItems(frame.items);
  const at = layoutOf(shape);
  const length = at.items + items.length;
  const room = roomOf(frame, length);
  const bytes = room === null ? messageRoom(length) : shortenedRoom(room.bytes, length);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setUint32(0, magic, true);
  view.setUint16(4, frame.source, true);
  view.setUint16(6, frame.destination, true);
  view.setBigUint64(8, frame.generation, true);
  view.setBigUint64(16, frame.number, true);
  view.setUint32(24, rows, true);
  view.setUint32(28, width, true);
  view.setUint32(32, frame.items.length, true);
  view.setUint32(36, items.length, true);
  view.setUint32(40, frame.completes, true);
  view.setUint32(44, frame.slowest.us, true);
  view.setUint32(48, frame.slowest.rows, true);
  view.setUint32(52, wireTypes.indexOf(wire), true);
  view.setBigUint64(56, 0n, true);
  new Uint32Array(bytes.buffer, bytes.byteOffset + headerBytes, rows).set(frame.tokens);
  bytes.fill(0, headerBytes + rows * 4, at.exponents);
  if (wire === 'f16') bytes.fill(0, at.exponents + rows, at.hidden);
  if (frame.hidden !== null && room === null) copyHidden(frame.hidden, hiddenAt(bytes, shape, at));
  bytes.set(items, at.items);
  return bytes;
}

function shapeOf({ tokens, hidden }: FrameContent): FrameShape {
  const rows = tokens.length;
  if (hidden === null || rows === 0) return { rows, width: 0, wire: 'f32' };
  const width = hiddenLength(hidden) / rows;
  assert(Number.isInteger(width), 'a hidden state has whole rows');
  return { rows, width, wire: wireOf(hidden) };
}

/** The frame's own room, where its hidden state is there and its items find place. */
const roomOf = ({ hidden, room = null }: FrameContent, length: number): FrameRoom | null =>
  room !== null && room.hidden === hidden && length <= room.bytes.length ? room : null;

function copyHidden(from: HiddenState, to: HiddenState): void {
  if (from instanceof Float32Array) {
    assert(to instanceof Float32Array, 'both are of one type');
    to.set(from);
    return;
  }
  assert(!(to instanceof Float32Array), 'both are of one type');
  to.halves.set(from.halves);
  to.exponents.set(from.exponents);
}

/** @throws FRAME_INVALID when the header and the length do not agree */
export function decodeHeader(bytes: Uint8Array): FrameHeader {
  return headerOf(new DataView(bytes.buffer, bytes.byteOffset, bytes.length));
}

function headerOf(view: DataView): FrameHeader {
  const length = view.byteLength;
  if (length < headerBytes) throw invalid('length', length);
  if (view.getUint32(0, true) !== magic) throw invalid('magic', view.getUint32(0, true));
  const rows = view.getUint32(24, true);
  const width = view.getUint32(28, true);
  const wire = wireTypes[view.getUint32(52, true)];
  if (wire === undefined || (width === 0 && wire !== 'f32'))
    throw invalid('hidden state type', view.getUint32(52, true));
  const expected = layoutOf({ rows, width, wire }).items + view.getUint32(36, true);
  if (length !== expected || expected > limits.frameBytes) throw invalid('length', length);
  if (view.getUint32(32, true) > limits.frameItems) throw invalid('items', view.getUint32(32, true));
  return {
    source: nodeIndex(view.getUint16(4, true)),
    destination: nodeIndex(view.getUint16(6, true)),
    generation: view.getBigUint64(8, true) as Generation,
    number: view.getBigUint64(16, true),
    rows,
    width,
    wire,
    completes: view.getUint32(40, true),
    slowest: { us: view.getUint32(44, true), rows: view.getUint32(48, true) },
  };
}

/**
 * Takes a frame apart; `tokens` and `hidden` are views of `bytes` where its alignment allows.
 * @throws FRAME_INVALID
 */
export function decodeFrame(bytes: Uint8Array): Frame {
  const { buffer, byteOffset, length } = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  const view = new DataView(buffer, byteOffset, length);
  const header = headerOf(view);
  const { rows, width } = header;
  const items = decodeItems(view, length - view.getUint32(36, true), view.getUint32(32, true));
  let itemRows = 0;
  for (const item of items) if (item.kind === 'rows') itemRows += item.rowCount;
  if (itemRows !== rows) throw invalid('rows', rows);
  const tokens = new Uint32Array(buffer, byteOffset + headerBytes, rows);
  if (width === 0) return { ...header, items, tokens, hidden: null };
  const at = layoutOf(header);
  const hidden = hiddenAt(new Uint8Array(buffer, byteOffset, length), header, at);
  return { ...header, items, tokens, hidden };
}

/** @throws FRAME_INVALID when the frame's hidden state is of another type than its load's */
export function requireWire({ width, wire }: Pick<FrameHeader, 'width' | 'wire'>, expected: WireType): void {
  if (width > 0 && wire !== expected)
    throw new P4Error('FRAME_INVALID', { field: 'hidden state type', found: wire, expected });
}

/** Gives a frame its number on a link, in place. */
export function numberFrame(bytes: Uint8Array, number: bigint): void {
  new DataView(bytes.buffer, bytes.byteOffset, bytes.length).setBigUint64(16, number, true);
}

/** The place of a frame's hidden state in its bytes. */
function hiddenAt(bytes: Uint8Array, { rows, width, wire }: FrameShape, at: FrameLayout): HiddenState {
  const { buffer, byteOffset } = bytes;
  if (wire === 'f32') return new Float32Array(buffer, byteOffset + at.hidden, rows * width);
  return {
    halves: new Uint16Array(buffer, byteOffset + at.hidden, rows * width),
    exponents: new Uint8Array(buffer, byteOffset + at.exponents, rows),
  };
}

/** Where the parts begin. */
function layoutOf({ rows, width, wire }: FrameShape): FrameLayout {
  const exponents = headerBytes + padded(rows * 4);
  const hidden = exponents + (wire === 'f16' ? padded(rows) : 0);
  return { exponents, hidden, items: hidden + rows * width * wireBytes[wire] };
}

interface FrameLayout {
  readonly exponents: number;
  readonly hidden: number;
  readonly items: number;
}

const padded = (bytes: number): number => Math.ceil(bytes / 16) * 16;

const wireBytes: Readonly<Record<WireType, number>> = { f32: 4, f16: 2 };

function invalid(field: string, found: number): P4Error {
  return new P4Error('FRAME_INVALID', { field, found });
}

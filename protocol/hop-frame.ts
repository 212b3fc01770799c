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

const magic = 0x3168_3470;
const headerBytes = 64;

/** What `encodeFrame` needs; rows, width and type follow from `tokens` and `hidden`. */
export type FrameContent = Omit<Frame, 'rows' | 'width' | 'wire'>;

/** @returns a buffer of its own, aligned to 16 bytes, so that `decodeFrame` maps it without copying */
export function encodeFrame(frame: FrameContent): Uint8Array<ArrayBuffer> {
  const { tokens, hidden } = frame;
  const rows = tokens.length;
  const width = hidden === null || rows === 0 ? 0 : hiddenLength(hidden) / rows;
  assert(Number.isInteger(width), 'a hidden state has whole rows');
  const wire = hidden === null ? 'f32' : wireOf(hidden);
  const items = encodeItems(frame.items);
  const at = layoutOf({ rows, width, wire });
  const bytes = new Uint8Array(at.items + items.length);
  const view = new DataView(bytes.buffer);
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
  new Uint32Array(bytes.buffer, headerBytes, rows).set(tokens);
  if (hidden instanceof Float32Array) new Float32Array(bytes.buffer, at.hidden, rows * width).set(hidden);
  else if (hidden !== null) {
    bytes.set(hidden.exponents, at.exponents);
    new Uint16Array(bytes.buffer, at.hidden, rows * width).set(hidden.halves);
  }
  bytes.set(items, at.items);
  return bytes;
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
  const { rows, width, wire } = header;
  const items = decodeItems(view, length - view.getUint32(36, true), view.getUint32(32, true));
  let itemRows = 0;
  for (const item of items) if (item.kind === 'rows') itemRows += item.rowCount;
  if (itemRows !== rows) throw invalid('rows', rows);
  const tokens = new Uint32Array(buffer, byteOffset + headerBytes, rows);
  if (width === 0) return { ...header, items, tokens, hidden: null };
  const at = layoutOf(header);
  const halves = (): HiddenState => ({
    halves: new Uint16Array(buffer, byteOffset + at.hidden, rows * width),
    exponents: new Uint8Array(buffer, byteOffset + at.exponents, rows),
  });
  const hidden = wire === 'f16' ? halves() : new Float32Array(buffer, byteOffset + at.hidden, rows * width);
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

/** Where the parts begin. */
function layoutOf({ rows, width, wire }: Pick<FrameHeader, 'rows' | 'width' | 'wire'>): FrameLayout {
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

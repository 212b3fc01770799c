/**
 * The messages of Ring.Hops on the wire, coded by hand: a frame is copied once on its way out and not at all on its way
 * in, where a general protobuf codec would copy it twice on either.
 *
 * The bytes are those of p4.proto: `HopFrame { bytes frame = 1; fixed32 crc32c = 2; }`, `HopAck { uint64 frames = 1; bool loading = 2; }`.
 * Unknown fields are skipped and fields may come in any order, as protobuf demands.
 */
import { P4Error } from './errors.ts';
import type { HopAck, HopFrame } from './messages.ts';

const frameTag = 0x0a;
const crcTag = 0x15;
const framesTag = 0x08;
const loadingTag = 0x10;
/** A varint of 32 bits. */
const lengthBytesMax = 5;
/** A varint of 64 bits. */
const varintBytesMax = 10;

export function encodeHopFrame({ frame, crc32c }: HopFrame): Buffer {
  const lengthBytes = varintLength(frame.length);
  const bytes = Buffer.allocUnsafe(1 + lengthBytes + frame.length + 5);
  bytes[0] = frameTag;
  const start = writeVarint(bytes, 1, frame.length);
  bytes.set(frame, start);
  bytes[start + frame.length] = crcTag;
  bytes.writeUInt32LE(crc32c, start + frame.length + 1);
  return bytes;
}

/**
 * @returns a frame that is a view of `bytes`
 * @throws FRAME_INVALID when `bytes` are no HopFrame
 */
export function decodeHopFrame(bytes: Uint8Array<ArrayBuffer>): HopFrame {
  const reader = new FieldReader(bytes);
  let frame = bytes.subarray(0, 0);
  let crc32c = 0;
  for (let tag = reader.tag(); tag !== null; tag = reader.tag()) {
    if (tag === frameTag) frame = reader.bytes();
    else if (tag === crcTag) crc32c = reader.fixed32();
    else reader.skip(tag);
  }
  return { frame, crc32c };
}

export function encodeHopAck({ frames, loading }: HopAck): Buffer {
  const bytes = Buffer.allocUnsafe(1 + varintLength(frames) + (loading ? 2 : 0));
  bytes[0] = framesTag;
  const end = writeVarint(bytes, 1, frames);
  if (loading) bytes.set([loadingTag, 1], end);
  return bytes;
}

/** @throws FRAME_INVALID when `bytes` are no HopAck, or count more than 2^53 - 1 frames */
export function decodeHopAck(bytes: Uint8Array<ArrayBuffer>): HopAck {
  const reader = new FieldReader(bytes);
  let frames = 0;
  let loading = false;
  for (let tag = reader.tag(); tag !== null; tag = reader.tag()) {
    if (tag === framesTag) frames = reader.varint(varintBytesMax);
    else if (tag === loadingTag) loading = reader.varint(varintBytesMax) !== 0;
    else reader.skip(tag);
  }
  return { frames, loading };
}

/** Reads one protobuf message from front to back. */
class FieldReader {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  #offset = 0;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
  }

  /** The next field's number and wire type, `null` at the end. */
  tag(): number | null {
    return this.#offset === this.#bytes.length ? null : this.varint(lengthBytesMax);
  }

  varint(bytesMax: number): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < bytesMax; count++) {
      const byte = this.#bytes[this.#offset++];
      if (byte === undefined) throw invalid('length');
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
      scale *= 128;
    }
    throw invalid('varint');
  }

  fixed32(): number {
    const start = this.#advance(4);
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + start, 4).getUint32(0, true);
  }

  bytes(): Uint8Array<ArrayBuffer> {
    const length = this.varint(lengthBytesMax);
    const start = this.#advance(length);
    return this.#bytes.subarray(start, start + length);
  }

  /** Passes over the value of a field this release does not know. */
  skip(tag: number): void {
    const wireType = tag & 7;
    if (tag < 8) throw invalid('field');
    if (wireType === 0) this.#skipVarint();
    else if (wireType === 1) this.#advance(8);
    else if (wireType === 2) this.bytes();
    else if (wireType === 5) this.#advance(4);
    else throw invalid('wire type');
  }

  #skipVarint(): void {
    for (let count = 0; count < varintBytesMax; count++) {
      const byte = this.#bytes[this.#advance(1)] ?? 0;
      if (byte < 0x80) return;
    }
    throw invalid('varint');
  }

  /** @returns where the passed-over bytes start */
  #advance(length: number): number {
    const start = this.#offset;
    if (start + length > this.#bytes.length) throw invalid('length');
    this.#offset = start + length;
    return start;
  }
}

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** @returns the offset behind what was written */
function writeVarint(bytes: Uint8Array, offset: number, value: number): number {
  let at = offset;
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[at++] = (rest % 128) | 0x80;
  bytes[at++] = rest;
  return at;
}

const invalid = (field: string): P4Error => new P4Error('FRAME_INVALID', { field: `protobuf ${field}` });

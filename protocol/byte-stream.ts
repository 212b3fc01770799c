/** Little-endian fields written to, and read from, bytes; reading past the end is FRAME_INVALID. */
import { P4Error } from './errors.ts';

export class ByteWriter {
  #bytes = Buffer.allocUnsafe(512);
  length = 0;

  u32(value: number): this {
    this.#reserve(4);
    this.length = this.#bytes.writeUInt32LE(value >>> 0, this.length);
    return this;
  }

  u64(value: bigint): this {
    this.#reserve(8);
    this.length = this.#bytes.writeBigUInt64LE(value, this.length);
    return this;
  }

  /** A u32 length in bytes and UTF-8. */
  text(value: string): this {
    const bytes = Buffer.from(value, 'utf8');
    this.u32(bytes.length).#reserve(bytes.length);
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
    return this;
  }

  patchU32(offset: number, value: number): void {
    this.#bytes.writeUInt32LE(value, offset);
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  #reserve(count: number): void {
    if (this.length + count <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.length + count));
    grown.set(this.#bytes.subarray(0, this.length));
    this.#bytes = grown;
  }
}

export class ByteReader {
  readonly #view: DataView;
  offset: number;

  /** Reads `view` from `offset` on. */
  constructor(view: DataView, offset = 0) {
    this.#view = view;
    this.offset = offset;
  }

  get remaining(): number {
    return this.#view.byteLength - this.offset;
  }

  u32(): number {
    this.#require(4);
    const value = this.#view.getUint32(this.offset, true);
    this.offset += 4;
    return value;
  }

  u64(): bigint {
    this.#require(8);
    const value = this.#view.getBigUint64(this.offset, true);
    this.offset += 8;
    return value;
  }

  json(): unknown {
    const length = this.u32();
    this.#require(length);
    const { buffer, byteOffset } = this.#view;
    const text = Buffer.from(buffer, byteOffset + this.offset, length).toString('utf8');
    this.offset += length;
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new P4Error('FRAME_INVALID', { field: 'json', found: length }, cause);
    }
  }

  /** A u32 count and that many elements of at least `elementBytes` each. */
  list<Element>(elementBytes: number, read: () => Element): Element[] {
    const count = this.u32();
    this.#require(count * elementBytes);
    return Array.from({ length: count }, read);
  }

  #require(count: number): void {
    if (count > this.remaining) throw new P4Error('FRAME_INVALID', { field: 'length', found: this.offset });
  }
}

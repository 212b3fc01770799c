/**
 * Writing a GGUF file: its header from metadata and a tensor table, then the tensors in order.
 *
 * The layout is pure: it gives the exact header and size before a byte is written. The writer keeps a running sha256 of
 * all it wrote, so that what the disk holds can be compared afterwards.
 */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { assert } from '../protocol/assert.ts';
import { tensorBytes, type GgmlType } from './ggml-type.ts';
import { align } from './gguf-header.ts';
import { arrayTypeCode, elementTypeCodes, encodedText, type GgufMetadata } from './gguf-value.ts';

export interface TensorShape {
  readonly name: string;
  readonly type: GgmlType;
  readonly shape: readonly number[];
}

export interface GgufLayout {
  /** Header, padded: the weights begin right after it. */
  readonly header: Buffer;
  readonly alignment: number;
  /** Size of the whole file, the last tensor's padding included. */
  readonly bytes: number;
}

const version = 3;

/** `alignment` must be what the metadata's `general.alignment` says, or 32 where it says nothing. */
export function layOut(metadata: GgufMetadata, tensors: readonly TensorShape[], alignment: number): GgufLayout {
  const parts: Buffer[] = [Buffer.from('GGUF'), uint32(version), uint64(tensors.length), uint64(metadata.size)];
  for (const [key, value] of metadata) {
    parts.push(encodedText(key));
    if (value.kind === 'array') parts.push(uint32(arrayTypeCode));
    parts.push(uint32(elementTypeCodes[value.type]));
    if (value.kind === 'array') parts.push(uint64(value.length));
    parts.push(value.bytes);
  }
  let offset = 0;
  for (const { name, type, shape } of tensors) {
    parts.push(encodedText(name), uint32(shape.length), ...shape.map(uint64), uint32(type.code), uint64(offset));
    offset = align(offset + tensorBytes(type, shape), alignment);
  }
  const unpadded = parts.reduce((sum, part) => sum + part.length, 0);
  parts.push(Buffer.alloc(align(unpadded, alignment) - unpadded));
  const header = Buffer.concat(parts);
  return { header, alignment, bytes: header.length + offset };
}

/** Writes one file front to back. Whoever opened the handle syncs and closes it. */
export class GgufWriter {
  readonly #handle: FileHandle;
  readonly #layout: GgufLayout;
  readonly #hash = createHash('sha256');
  #offset = 0;

  constructor(handle: FileHandle, layout: GgufLayout) {
    this.#handle = handle;
    this.#layout = layout;
  }

  /** Bytes written so far. */
  get offset(): number {
    return this.#offset;
  }

  async writeHeader(): Promise<void> {
    assert(this.#offset === 0, 'the header comes first');
    await this.write(this.#layout.header);
  }

  /** Writes the next bytes of the current tensor. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    let written = 0;
    while (written < bytes.length) {
      const { bytesWritten } = await this.#handle.write(bytes, written, bytes.length - written, this.#offset);
      written += bytesWritten;
      this.#offset += bytesWritten;
    }
  }

  /** Pads the tensor that has just been written whole. */
  async endTensor(): Promise<void> {
    const padding = align(this.#offset, this.#layout.alignment) - this.#offset;
    if (padding > 0) await this.write(Buffer.alloc(padding));
  }

  /** The sha256 of the file, in hexadecimal. Every tensor must have been written. */
  finish(): string {
    assert(this.#offset === this.#layout.bytes, 'the file has the size that was laid out');
    return this.#hash.digest('hex');
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

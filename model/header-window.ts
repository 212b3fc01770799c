/**
 * A file's header, read piece by piece: only what has been asked for is in memory, and never more than the bounds
 * allow, whatever numbers the file contains.
 *
 * A piece is parsed by a synchronous function over a `HeaderCursor`. Where the window ends too early, more is read and
 * the piece is parsed once more; the window doubles, so a piece is seen a few times at most.
 */
import type { FileHandle } from 'node:fs/promises';
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';

const firstWindowBytes = 64 * 1024;

/** Says that a piece reaches past the window; never leaves this file. */
class Shortfall extends Error {
  readonly end: number;
  readonly expected: string;

  constructor(end: number, expected: string) {
    super('the window ends within the piece');
    this.end = end;
    this.expected = expected;
  }
}

/** Reads numbers and bytes one after the other. Every method names what it expects, for the error's sake. */
export class HeaderCursor {
  offset: number;
  readonly #bytes: Buffer;
  readonly #origin: number;

  constructor(bytes: Buffer, origin: number) {
    this.#bytes = bytes;
    this.#origin = origin;
    this.offset = origin;
  }

  u32(expected: string): number {
    return this.#bytes.readUInt32LE(this.#claim(4, expected));
  }

  /** A 64-bit count, size or offset. From 2^53 on it is not exact, but still far above every bound. */
  u64(expected: string): number {
    const at = this.#claim(8, expected);
    return this.#bytes.readUInt32LE(at) + this.#bytes.readUInt32LE(at + 4) * 0x1_0000_0000;
  }

  /** The next bytes, as a view into the window: copy what is kept. The caller has bounded `count`. */
  bytes(count: number, expected: string): Buffer {
    const at = this.#claim(count, expected);
    return this.#bytes.subarray(at, at + count);
  }

  /** Makes sure that `count` bytes follow, without consuming them. */
  require(count: number, expected: string): void {
    const offset = this.offset;
    this.#claim(count, expected);
    this.offset = offset;
  }

  #claim(count: number, expected: string): number {
    const at = this.offset - this.#origin;
    if (at + count > this.#bytes.length) throw new Shortfall(this.offset + count, expected);
    this.offset += count;
    return at;
  }
}

export class HeaderWindow {
  readonly #handle: FileHandle;
  readonly #file: string;
  readonly #fileBytes: number;
  #bytes = Buffer.alloc(0);
  #offset = 0;

  constructor(handle: FileHandle, file: string, fileBytes: number) {
    this.#handle = handle;
    this.#file = file;
    this.#fileBytes = fileBytes;
  }

  /** Bytes of the file that have been parsed. */
  get offset(): number {
    return this.#offset;
  }

  get fileBytes(): number {
    return this.#fileBytes;
  }

  /**
   * Parses the next piece of the file.
   *
   * @throws GGUF_TRUNCATED when the file ends within the piece; GGUF_INVALID when the header passes its bound
   */
  async piece<Value>(parse: (cursor: HeaderCursor) => Value): Promise<Value> {
    for (;;) {
      try {
        const cursor = new HeaderCursor(this.#bytes, this.#offset);
        const value = parse(cursor);
        this.#bytes = this.#bytes.subarray(cursor.offset - this.#offset);
        this.#offset = cursor.offset;
        return value;
      } catch (error) {
        if (!(error instanceof Shortfall)) throw error;
        await this.#extend(error);
      }
    }
  }

  async #extend({ end, expected }: Shortfall): Promise<void> {
    if (end > this.#fileBytes) throw this.#truncated(expected, end);
    if (end > limits.ggufHeaderBytes) {
      const found = `${expected} would end at byte ${end}`;
      throw new P4Error('GGUF_INVALID', {
        file: this.#file,
        offset: this.#offset,
        found,
        expected: `a header of at most ${limits.ggufHeaderBytes} bytes`,
      });
    }
    const wanted = Math.max(end - this.#offset, this.#bytes.length * 2, firstWindowBytes);
    const bytes = Buffer.allocUnsafe(Math.min(wanted, this.#fileBytes - this.#offset));
    let filled = this.#bytes.copy(bytes);
    while (filled < bytes.length) {
      const { bytesRead } = await this.#handle.read(bytes, filled, bytes.length - filled, this.#offset + filled);
      if (bytesRead === 0) throw this.#truncated(expected, end);
      filled += bytesRead;
    }
    this.#bytes = bytes;
  }

  #truncated(expected: string, end: number): P4Error {
    return new P4Error('GGUF_TRUNCATED', {
      file: this.#file,
      offset: this.#offset,
      expected: `${expected}, up to byte ${end}`,
      fileBytes: this.#fileBytes,
    });
  }
}

/**
 * Messages on a byte stream, each behind its length as u32 little-endian.
 *
 * A message is copied once, from the chunks that the stream delivers into a buffer of its own at offset 0, however many
 * chunks it takes.
 */
import { assert } from './assert.ts';
import { P4Error } from './errors.ts';

const prefixBytes = 4;

export class LengthPrefixReader {
  readonly #limitBytes: number;
  readonly #prefix = new Uint8Array(prefixBytes);
  #prefixFilled = 0;
  #message: Uint8Array<ArrayBuffer> | null = null;
  #messageFilled = 0;

  /** @param limitBytes the longest message that is taken */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Whether the stream stands between two messages; an end anywhere else cuts one off. */
  get isBetweenMessages(): boolean {
    return this.#message === null && this.#prefixFilled === 0;
  }

  /**
   * Takes what arrived; the chunk may be used again by the caller afterwards.
   *
   * @returns the messages that are complete with it, in order
   * @throws STAGE_PROTOCOL for a length of 0 or beyond the limit; the stream cannot be read on then
   */
  push(chunk: Uint8Array): Uint8Array<ArrayBuffer>[] {
    const messages: Uint8Array<ArrayBuffer>[] = [];
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#message === null) offset += this.#takePrefix(chunk, offset);
      else offset += this.#takeBody(this.#message, chunk, offset);
      if (this.#message !== null && this.#messageFilled === this.#message.length) {
        messages.push(this.#message);
        this.#message = null;
      }
    }
    return messages;
  }

  #takePrefix(chunk: Uint8Array, offset: number): number {
    const taken = Math.min(prefixBytes - this.#prefixFilled, chunk.length - offset);
    this.#prefix.set(chunk.subarray(offset, offset + taken), this.#prefixFilled);
    this.#prefixFilled += taken;
    if (this.#prefixFilled === prefixBytes) {
      const length = new DataView(this.#prefix.buffer).getUint32(0, true);
      if (length === 0 || length > this.#limitBytes) {
        throw new P4Error('STAGE_PROTOCOL', { what: 'message length', found: length, limit: this.#limitBytes });
      }
      // Not from the pool, so that it begins at offset 0 of its own buffer, and not zeroed: every byte is written.
      this.#message = Buffer.allocUnsafeSlow(length);
      this.#messageFilled = 0;
      this.#prefixFilled = 0;
    }
    return taken;
  }

  #takeBody(message: Uint8Array, chunk: Uint8Array, offset: number): number {
    const taken = Math.min(message.length - this.#messageFilled, chunk.length - offset);
    message.set(chunk.subarray(offset, offset + taken), this.#messageFilled);
    this.#messageFilled += taken;
    return taken;
  }
}

/** What a message is written to: a socket of `node:net`. */
export interface MessageSink {
  cork(): void;
  uncork(): void;
  write(bytes: Uint8Array): boolean;
}

/**
 * Messages up to this size are copied behind their length and written at once. Copying them takes a microsecond or two;
 * holding a stream back for two writes, and the gathering write that follows, take longer than that.
 */
const copiedBytes = 64 * 1024;

/** Writes length and message together; the caller does not touch the message again. */
export function writeMessage(sink: MessageSink, message: Uint8Array): void {
  assert(message.length > 0, 'a message has bytes');
  if (message.length <= copiedBytes) {
    const bytes = Buffer.allocUnsafe(prefixBytes + message.length);
    bytes.writeUInt32LE(message.length);
    bytes.set(message, prefixBytes);
    sink.write(bytes);
    return;
  }
  const prefix = Buffer.allocUnsafe(prefixBytes);
  prefix.writeUInt32LE(message.length);
  sink.cork();
  sink.write(prefix);
  sink.write(message);
  sink.uncork();
}

/**
 * Messages on a byte stream, each behind its length as u32 little-endian.
 *
 * A message that arrives in one chunk is a view of it. One that takes several is copied once, into a buffer that begins with
 * the length. Either way it can be written on as it lies, length and all.
 */
import { arrayBufferView } from './array-buffer-view.ts';
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
   * Takes what arrived; nobody writes to the chunk any more.
   *
   * @returns the messages that are complete with it, in order; some are views of the chunk
   * @throws STAGE_PROTOCOL for a length of 0 or beyond the limit; the stream cannot be read on then
   */
  push(chunk: Uint8Array): Uint8Array<ArrayBuffer>[] {
    const bytes = arrayBufferView(chunk);
    const messages: Uint8Array<ArrayBuffer>[] = [];
    let offset = 0;
    while (offset < bytes.length) {
      if (this.#message === null) {
        const whole = this.#wholeAt(bytes, offset);
        if (whole === null) offset += this.#takePrefix(bytes, offset);
        else {
          messages.push(whole);
          offset += prefixBytes + whole.length;
        }
      } else offset += this.#takeBody(this.#message, bytes, offset);
      if (this.#message !== null && this.#messageFilled === this.#message.length) {
        messages.push(this.#message);
        this.#message = null;
      }
    }
    return messages;
  }

  /** The message that begins here, where all of it is there. */
  #wholeAt(bytes: Uint8Array<ArrayBuffer>, offset: number): Uint8Array<ArrayBuffer> | null {
    const start = offset + prefixBytes;
    if (this.#prefixFilled > 0 || start > bytes.length) return null;
    const length = this.#checked(lengthAt(bytes, offset));
    return start + length > bytes.length ? null : bytes.subarray(start, start + length);
  }

  #takePrefix(chunk: Uint8Array, offset: number): number {
    const taken = Math.min(prefixBytes - this.#prefixFilled, chunk.length - offset);
    this.#prefix.set(chunk.subarray(offset, offset + taken), this.#prefixFilled);
    this.#prefixFilled += taken;
    if (this.#prefixFilled === prefixBytes) {
      this.#message = messageRoom(this.#checked(lengthAt(this.#prefix, 0)));
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

  #checked(length: number): number {
    if (length > 0 && length <= this.#limitBytes) return length;
    throw new P4Error('STAGE_PROTOCOL', { what: 'message length', found: length, limit: this.#limitBytes });
  }
}

/**
 * Room for a message that is to be written: in a buffer of its own, behind its length, which is there. The bytes are not
 * zeroed: whoever asks for the room fills all of it.
 */
export function messageRoom(length: number): Uint8Array<ArrayBuffer> {
  const whole = Buffer.allocUnsafeSlow(prefixBytes + length);
  whole.writeUInt32LE(length);
  return new Uint8Array(whole.buffer, prefixBytes, length);
}

/** The beginning of such room, where the message has become shorter. */
export function shortenedRoom({ buffer }: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  new DataView(buffer).setUint32(0, length, true);
  return new Uint8Array(buffer, prefixBytes, length);
}

/** Length and message as they lie, where the buffer begins with them; else `null`. */
function withItsLength(message: Uint8Array): Uint8Array | null {
  const { buffer, byteOffset, length } = message;
  if (byteOffset !== prefixBytes) return null;
  const whole = new Uint8Array(buffer, 0, prefixBytes + length);
  return lengthAt(whole, 0) === length ? whole : null;
}

const lengthAt = ({ buffer, byteOffset }: Uint8Array, offset: number): number =>
  new DataView(buffer, byteOffset + offset, prefixBytes).getUint32(0, true);

/** What a message is written to: a socket of `node:net`. */
export interface MessageSink {
  cork(): void;
  uncork(): void;
  write(bytes: Uint8Array): boolean;
}

/**
 * Where a message has not its length before it, one of up to this size is copied behind it and written at once. Copying them takes a microsecond or two;
 * holding a stream back for two writes, and the gathering write that follows, take longer than that.
 */
const copiedBytes = 64 * 1024;

/** Writes length and message together; the caller does not touch the message again. */
export function writeMessage(sink: MessageSink, message: Uint8Array): void {
  assert(message.length > 0, 'a message has bytes');
  const whole = withItsLength(message);
  if (whole !== null) {
    sink.write(whole);
    return;
  }
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

/**
 * A connection between two probe programs, read by the line and by the count of bytes, each with a deadline. It buffers
 * at most what is asked for and one chunk of the kernel's; whatever goes wrong ends the connection.
 */
import type { Socket } from 'node:net';
import { memberOf } from '../../protocol/plain-value.ts';

/** Bytes of one line: a greeting with two names and a digest. */
const lineBytes = 4096;

/** `timed-out` and `closed` as in `UnreachableReason`; `stranger`: not what a probe program says. */
export type WireFault = 'timed-out' | 'closed' | 'stranger';

export class WireError extends Error {
  readonly fault: WireFault;

  constructor(fault: WireFault) {
    super(`the connection is over: ${fault}`);
    this.fault = fault;
  }
}

export class Wire {
  readonly socket: Socket;
  /** What wakes a reader that waits. */
  #wake: (() => void) | null = null;
  #isOver = false;

  /** Takes the socket over: nobody else reads from it, or waits for its errors. */
  constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('readable', () => {
      this.#wake?.();
    });
    const over = (): void => {
      this.#isOver = true;
      this.#wake?.();
    };
    // An error is followed by `close`.
    socket
      .on('error', () => undefined)
      .on('end', over)
      .on('close', over);
  }

  send(value: object): void {
    this.socket.write(`${JSON.stringify(value)}\n`);
  }

  /**
   * The next line as JSON.
   * @throws WireError
   */
  async receive(withinMs: number): Promise<unknown> {
    const endsAtMs = performance.now() + withinMs;
    const parts: Buffer[] = [];
    for (let length = 0; length <= lineBytes; length += 1) {
      const byte = await this.#read(1, endsAtMs);
      if (byte[0] === 0x0a) return parsed(Buffer.concat(parts).toString('utf8'));
      parts.push(byte);
    }
    throw this.#failed('stranger');
  }

  /**
   * @param count at most the socket's own high-water mark is held beside them
   * @throws WireError
   */
  async bytes(count: number, withinMs: number): Promise<void> {
    const endsAtMs = performance.now() + withinMs;
    for (let missing = count; missing > 0;) missing -= (await this.#read(Math.min(missing, 16_384), endsAtMs)).length;
  }

  /**
   * Whatever has arrived, at least a byte; `null` when the time is over.
   * @throws WireError when the connection is
   */
  async some(endsAtMs: number): Promise<Buffer | null> {
    for (;;) {
      const chunk: unknown = this.socket.read();
      if (Buffer.isBuffer(chunk)) return chunk;
      if (this.#isOver) throw this.#failed('closed');
      if (!(await this.#news(endsAtMs))) return null;
    }
  }

  async #read(count: number, endsAtMs: number): Promise<Buffer> {
    for (;;) {
      const chunk: unknown = this.socket.read(count);
      if (Buffer.isBuffer(chunk)) return chunk;
      if (this.#isOver) throw this.#failed('closed');
      if (!(await this.#news(endsAtMs))) throw this.#failed('timed-out');
    }
  }

  /** Waits for something to read or the end; false when the time is over. */
  #news(endsAtMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isNews: boolean): void => {
        clearTimeout(timer);
        this.#wake = null;
        resolve(isNews);
      };
      const timer = setTimeout(done, Math.max(0, endsAtMs - performance.now()), false);
      this.#wake = () => {
        done(true);
      };
    });
  }

  #failed(fault: WireFault): WireError {
    this.socket.destroy();
    return new WireError(fault);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function textOf(value: unknown, key: string): string {
  const text = memberOf(value, key);
  if (typeof text !== 'string') throw new WireError('stranger');
  return text;
}

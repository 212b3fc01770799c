/** The agent's end of a stage's data socket: hop frames out, hop frames back, in order. */
import type { Socket } from 'node:net';

import { P4Error } from '../../protocol/errors.ts';
import { LengthPrefixReader, writeMessage } from '../../protocol/length-prefix.ts';
import { limits } from '../../protocol/limits.ts';
import { encodeStageJson, parseDataAnswer } from '../../protocol/stage-control-codec.ts';
import type { DataHello } from '../../protocol/stage-control.ts';
import { connectOnce } from './control-client.ts';

export interface FrameEvents {
  /** A frame of the stage; nobody writes to its bytes any more. */
  frame(bytes: Uint8Array<ArrayBuffer>): void;
  /** Told once, unless `close` was called before. */
  lost(error: P4Error): void;
}

export class FrameClient {
  readonly #socket: Socket;
  readonly #events: FrameEvents;
  #isClosed = false;

  private constructor(socket: Socket, events: FrameEvents) {
    this.#socket = socket;
    this.#events = events;
  }

  /**
   * @throws STAGE_VERSION, STAGE_OF_ANOTHER_NODE, GENERATION_MISMATCH when the stage refuses the hello; STAGE_LOST when it
   *   does not answer
   */
  static async open(path: string, hello: DataHello, events: FrameEvents): Promise<FrameClient> {
    const attempt = await connectOnce(path);
    if (attempt.kind === 'failed') throw lost(attempt.cause.message, attempt.cause);
    const client = new FrameClient(attempt.socket, events);
    await client.#greet(hello);
    return client;
  }

  /** Sends a frame; its bytes are not touched again by the caller. */
  send(frame: Uint8Array): void {
    if (!this.#isClosed) writeMessage(this.#socket, frame);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  #greet(hello: DataHello): Promise<void> {
    const socket = this.#socket;
    const reader = new LengthPrefixReader(limits.frameBytes);
    return new Promise((resolve, reject) => {
      let isGreeted = false;
      const fail = (error: P4Error): void => {
        if (isGreeted) this.#lose(error);
        else {
          this.close();
          reject(error);
        }
      };
      const take = (message: Uint8Array<ArrayBuffer>): void => {
        if (isGreeted) {
          if (!this.#isClosed) this.#events.frame(message);
          return;
        }
        const answer = parseDataAnswer(message);
        if (answer.kind === 'refused') throw new P4Error(answer.code, answer.facts);
        isGreeted = true;
        socket.setTimeout(0);
        resolve();
      };
      socket.setTimeout(limits.stageAnswerMs, () => {
        fail(lost(`no answer within ${limits.stageAnswerMs} ms`));
      });
      socket.on('data', (chunk: Buffer) => {
        try {
          for (const message of reader.push(chunk)) take(message);
        } catch (error) {
          if (!(error instanceof P4Error)) throw error;
          fail(error);
        }
      });
      socket.on('error', (cause) => {
        fail(lost(cause.message, cause));
      });
      socket.on('close', () => {
        fail(lost('closed'));
      });
      writeMessage(socket, encodeStageJson(hello));
    });
  }

  #lose(error: P4Error): void {
    if (this.#isClosed) return;
    this.close();
    this.#events.lost(error);
  }
}

const lost = (reason: string, cause?: unknown): P4Error => new P4Error('STAGE_LOST', { socket: 'data', reason }, cause);

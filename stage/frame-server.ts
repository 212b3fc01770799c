/**
 * The stage's data socket, served on the thread that computes so that a frame meets no other thread on its way.
 *
 * One agent at a time: a second one with the right hello takes the place of the first, which has restarted. A hello or a
 * frame of another generation is refused and its connection closed; nothing else changes (G3).
 */
import { createServer, type Server, type Socket } from 'node:net';

import { P4Error, type ErrorFacts } from '../protocol/errors.ts';
import { LengthPrefixReader, writeMessage } from '../protocol/length-prefix.ts';
import { limits } from '../protocol/limits.ts';
import { encodeStageJson, parseDataHello } from '../protocol/stage-control-codec.ts';
import { stageProtocolVersion, type DataAnswer } from '../protocol/stage-control.ts';
import type { StageIdentity } from './frame-check.ts';

export interface FrameEvents {
  /** An agent is there, with nothing under way. */
  attached(): void;
  /** @throws P4Error when the frame is refused */
  frame(bytes: Uint8Array): void;
  /** The frames of one read are told; `isDrained`: the socket had no more. */
  read(isDrained: boolean): void;
  /** The agent takes frames again. */
  writable(): void;
  log(event: string, facts: ErrorFacts): void;
}

/** What a read takes at most: one that brings less has emptied the socket. */
const readBytes = 64 * 1024;

export class FrameServer {
  readonly #identity: StageIdentity;
  readonly #events: FrameEvents;
  readonly #server: Server;
  readonly #greeting = new Set<Socket>();
  #agent: Socket | null = null;

  private constructor(identity: StageIdentity, events: FrameEvents) {
    this.#identity = identity;
    this.#events = events;
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.#greet(socket);
    });
  }

  /** @throws STAGE_RUNTIME_FOLDER when nothing can listen there */
  static async listen(path: string, identity: StageIdentity, events: FrameEvents): Promise<FrameServer> {
    const frames = new FrameServer(identity, events);
    await new Promise<void>((resolve, reject) => {
      frames.#server.once('error', (cause) => {
        reject(new P4Error('STAGE_RUNTIME_FOLDER', { path, reason: cause.message }, cause));
      });
      frames.#server.listen(path, resolve);
    });
    return frames;
  }

  /** Whether a frame may be sent: an agent is there and has taken the former ones (E4). */
  get canSend(): boolean {
    return this.#agent !== null && !this.#agent.writableNeedDrain;
  }

  send(frame: Uint8Array): void {
    if (this.#agent !== null) writeMessage(this.#agent, frame);
  }

  /** Stops reading from the agent, so that it waits (E4). */
  pause(): void {
    this.#agent?.pause();
  }

  resume(): void {
    if (this.#agent?.isPaused() === true) this.#agent.resume();
  }

  close(): void {
    this.#server.close();
    this.#agent?.destroy();
    for (const socket of this.#greeting) socket.destroy();
  }

  #greet(socket: Socket): void {
    // Frames follow the hello at once, so the first message decides only how the next ones are read.
    const reader = new LengthPrefixReader(limits.frameBytes);
    this.#greeting.add(socket);
    socket.setTimeout(limits.stageAnswerMs, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) this.#take(socket, message);
      } catch (error) {
        this.#refuse(socket, error);
      }
      if (socket === this.#agent) this.#events.read(chunk.length < readBytes);
    });
    socket.on('drain', () => {
      if (socket === this.#agent) this.#events.writable();
    });
    socket.on('error', (error) => {
      this.#events.log('data-socket-failed', { reason: error.message });
    });
    socket.on('close', () => {
      this.#greeting.delete(socket);
      if (socket !== this.#agent) return;
      this.#agent = null;
      this.#events.log('agent-left', {});
    });
  }

  #take(socket: Socket, message: Uint8Array): void {
    if (socket.destroyed || socket.writableEnded) return;
    if (socket === this.#agent) {
      this.#events.frame(message);
      return;
    }
    if (!this.#greeting.delete(socket)) return;
    socket.setTimeout(0);
    this.#requireMine(message);
    this.#agent?.destroy();
    this.#agent = socket;
    this.#events.attached();
    writeMessage(socket, encodeStageJson({ kind: 'accepted' }));
    this.#events.log('agent-attached', {});
  }

  #requireMine(message: Uint8Array): void {
    const hello = parseDataHello(message);
    const { ring, node, generation } = this.#identity;
    if (hello.protocol !== stageProtocolVersion) {
      throw new P4Error('STAGE_VERSION', { found: hello.protocol, expected: stageProtocolVersion });
    }
    if (hello.ring !== ring || hello.node !== node) {
      const found = `${hello.ring}.${hello.node}`;
      throw new P4Error('STAGE_OF_ANOTHER_NODE', { found, expected: `${ring}.${node}` });
    }
    if (hello.generation !== generation.toString()) throw new P4Error('GENERATION_MISMATCH', { ring, node });
  }

  /** What is not the peer's mistake is a bug, and ends the stage. */
  #refuse(socket: Socket, error: unknown): void {
    if (!(error instanceof P4Error)) throw error;
    const { code, facts } = error;
    this.#events.log('refused', { code, ...facts });
    if (socket === this.#agent) {
      socket.destroy();
      return;
    }
    const answer: DataAnswer = { kind: 'refused', code, facts };
    writeMessage(socket, encodeStageJson(answer));
    socket.end();
  }
}

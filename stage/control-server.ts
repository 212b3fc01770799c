/** The stage's control socket: JSON messages for any number of agents' connections, answered whatever the stage computes. */
import { createServer, type Server, type Socket } from 'node:net';

import { P4Error, type ErrorFacts } from '../protocol/errors.ts';
import { LengthPrefixReader, writeMessage } from '../protocol/length-prefix.ts';
import { limits } from '../protocol/limits.ts';
import { encodeStageJson, parseStageCommand } from '../protocol/stage-control-codec.ts';
import {
  stageProtocolVersion,
  type StageCommand,
  type StageMessage,
  type StageWelcome,
} from '../protocol/stage-control.ts';

/** What a connection may ask once it has said hello. */
export type ControlOrder = Exclude<StageCommand, { kind: 'hello' }>;

export type Reply = (message: StageMessage) => void;

export interface ControlEvents {
  welcome(): StageWelcome;
  /** @throws P4Error when the order is refused */
  order(order: ControlOrder, reply: Reply): void;
  log(event: string, facts: ErrorFacts): void;
}

export class ControlServer {
  readonly #events: ControlEvents;
  readonly #server: Server;
  /** Connections, and whether they have said hello. */
  readonly #greeted = new Map<Socket, boolean>();

  private constructor(events: ControlEvents) {
    this.#events = events;
    this.#server = createServer((socket) => {
      this.#serve(socket);
    });
  }

  /** @throws STAGE_RUNTIME_FOLDER when nothing can listen there */
  static async listen(path: string, events: ControlEvents): Promise<ControlServer> {
    const control = new ControlServer(events);
    await new Promise<void>((resolve, reject) => {
      control.#server.once('error', (cause) => {
        reject(new P4Error('STAGE_RUNTIME_FOLDER', { path, reason: cause.message }, cause));
      });
      control.#server.listen(path, resolve);
    });
    return control;
  }

  /** Tells every connection that has said hello. */
  tell(message: StageMessage): void {
    const bytes = encodeStageJson(message);
    for (const [socket, isGreeted] of this.#greeted) {
      if (isGreeted && socket.writable) writeMessage(socket, bytes);
    }
  }

  /** Ends every connection once what was said to it is on its way. */
  async close(): Promise<void> {
    this.#server.close();
    const endings = [...this.#greeted.keys()].map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.once('close', resolve);
          socket.end();
          socket.resume();
        }),
    );
    await Promise.all(endings);
  }

  #serve(socket: Socket): void {
    const reader = new LengthPrefixReader(limits.controlMessageBytes);
    this.#greeted.set(socket, false);
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) this.#take(socket, parseStageCommand(message));
      } catch (error) {
        if (!(error instanceof P4Error)) throw error;
        this.#events.log('control-refused', { code: error.code, ...error.facts });
        socket.destroy();
      }
    });
    socket.on('error', (error) => {
      this.#events.log('control-socket-failed', { reason: error.message });
    });
    socket.on('close', () => this.#greeted.delete(socket));
  }

  #take(socket: Socket, command: StageCommand): void {
    if (command.kind === 'hello') {
      this.#greet(socket, command.protocol);
      return;
    }
    const isGreeted = this.#greeted.get(socket) === true;
    if (!isGreeted) throw new P4Error('STAGE_PROTOCOL', { what: command.kind, found: 'no hello before it' });
    const reply: Reply = (message) => {
      if (socket.writable) writeMessage(socket, encodeStageJson(message));
    };
    try {
      this.#events.order(command, reply);
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
      reply(refusal(command, error));
    }
  }

  #greet(socket: Socket, protocol: number): void {
    // A stage of another release says which it is; whether to go on is the agent's to decide.
    if (protocol === stageProtocolVersion) this.#greeted.set(socket, true);
    writeMessage(socket, encodeStageJson(this.#events.welcome()));
    if (protocol !== stageProtocolVersion) socket.end();
  }
}

function refusal(order: ControlOrder, { code, facts }: P4Error): StageMessage {
  if (order.kind === 'load') return { kind: 'load-failed', code, facts };
  return { kind: 'refused', id: order.kind === 'stop' ? 0 : order.id, code, facts };
}

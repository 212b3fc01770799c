/**
 * The agent's socket for its own host (G7): whoever may open it may have a ring forgotten without its generation. It lies
 * in the agent's runtime folder, which is closed to other users, and has mode 0600 besides.
 */
import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import { hostFailure, hostLine, hostSocketName, parseHostOrder, type HostAnswer } from '../../protocol/host-order.ts';
import type { JournalReport } from '../../protocol/host-order.ts';
import type { RingName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { readLine } from './line.ts';

/** What the agent does about orders; each may reject with a `P4Error`, which is told. */
export interface HostHandlers {
  /** Gives the ring up on this host, without its generation. Resolves, when that is durable, with the stages ended. */
  readonly forget: (ring: RingName) => Promise<{ readonly stages: number }>;
  readonly journal: () => Promise<JournalReport> | JournalReport;
}

export class HostSocket {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(handlers: HostHandlers) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined); // Whoever asked went away.
      void serve(socket, handlers);
    });
    this.#server.maxConnections = limits.hostConnections;
  }

  /**
   * Listens in the runtime folder of an agent that holds its journal (J5), so a socket that lies there is a dead one's.
   *
   * Rejects with what the file system answers.
   */
  static async listen(runtimeFolder: string, handlers: HostHandlers): Promise<HostSocket> {
    const path = join(runtimeFolder, hostSocketName);
    await rm(path, { force: true });
    const host = new HostSocket(handlers);
    await new Promise<void>((resolve, reject) => {
      host.#server.once('error', reject);
      host.#server.listen(path, () => {
        host.#server.off('error', reject);
        resolve();
      });
    });
    await chmod(path, 0o600);
    return host;
  }

  /** Ends what is under way; the socket is gone afterwards. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

async function serve(socket: Socket, handlers: HostHandlers): Promise<void> {
  let answer: HostAnswer;
  try {
    answer = await answerTo(await readLine(socket), handlers);
  } catch (error) {
    if (!(error instanceof P4Error)) throw error;
    answer = hostFailure(error);
  }
  socket.end(hostLine(answer));
}

async function answerTo(line: Uint8Array, handlers: HostHandlers): Promise<HostAnswer> {
  const order = parseHostOrder(line);
  switch (order.kind) {
    case 'forget': {
      const { stages } = await handlers.forget(order.ring);
      return { kind: 'forgotten', stages };
    }
    case 'journal':
      return { kind: 'journal', report: await handlers.journal() };
  }
}

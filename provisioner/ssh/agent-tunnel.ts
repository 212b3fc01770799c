/**
 * A way to one agent through ssh, for gRPC: a Unix socket that this user alone may open, and behind it, for each
 * connection, one that the agent's host makes. Mutual TLS runs through it from end to end.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';

import { P4Error } from '../../protocol/errors.ts';
import type { AgentWay } from '../agent-client.ts';
import { unwritable } from '../durable-file.ts';
import type { SocketFolder } from '../socket-folder.ts';

/** What makes the connections to the agent. */
export interface TunnelEnd {
  /**
   * Comes to the agent's host, where it is not there.
   * @throws those of ssh
   */
  ready(signal: AbortSignal): Promise<void>;
  /** @throws as `Session.forward` */
  forward(signal: AbortSignal): Promise<Duplex>;
  /** Why it is no longer at the host, `null` where it is. */
  lost(): P4Error | null;
}

export interface TunnelNeeds {
  /** For people: what is in between. */
  readonly through: string;
  readonly folder: SocketFolder;
  /** Of the socket, at most 16 bytes; no other tunnel of the folder has it. */
  readonly name: string;
  readonly end: TunnelEnd;
}

export class AgentTunnel implements AgentWay {
  readonly through: string;
  readonly socketPath: string;
  readonly #needs: TunnelNeeds;
  readonly #streams = new Set<Duplex>();
  readonly #closing = new AbortController();
  #listening: Promise<Server> | null = null;
  /** Why the latest connection did not come to the agent. */
  #failure: P4Error | null = null;

  constructor(needs: TunnelNeeds) {
    this.#needs = needs;
    this.through = needs.through;
    this.socketPath = join(needs.folder.path, needs.name);
  }

  /** @throws those of `TunnelEnd.ready`, STATE_UNWRITABLE */
  async open(signal: AbortSignal): Promise<void> {
    await this.#needs.end.ready(signal);
    this.#listening ??= this.#listen();
    await this.#listening;
  }

  failure(): P4Error | null {
    return this.#needs.end.lost() ?? this.#failure;
  }

  async close(): Promise<void> {
    this.#closing.abort(new P4Error('CANCELLED', { by: 'the command, which is done' }));
    const server = await this.#listening?.catch(() => null);
    for (const stream of this.#streams) stream.destroy();
    if (server === null || server === undefined) return;
    await new Promise<void>((resolve) => {
      server.close(() => {
        resolve();
      });
    });
  }

  async #listen(): Promise<Server> {
    await this.#needs.folder.make();
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      void this.#carry(socket);
    });
    return new Promise((resolve, reject) => {
      server.once('error', (error) => {
        reject(unwritable(this.socketPath, error));
      });
      server.listen(this.socketPath, () => {
        resolve(server);
      });
    });
  }

  async #carry(local: Socket): Promise<void> {
    this.#track(local);
    let remote: Duplex;
    try {
      remote = await this.#needs.end.forward(this.#closing.signal);
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
      this.#failure = error;
      local.destroy();
      return;
    }
    this.#failure = null;
    this.#track(remote);
    local.once('close', () => {
      remote.destroy();
    });
    remote.once('close', () => {
      local.destroy();
    });
    if (local.destroyed) remote.destroy();
    else local.pipe(remote).pipe(local);
  }

  /** What breaks it ends it, and its end ends the other side. */
  #track(stream: Duplex): void {
    this.#streams.add(stream);
    stream.once('close', () => {
      this.#streams.delete(stream);
    });
    stream.on('error', () => undefined);
  }
}

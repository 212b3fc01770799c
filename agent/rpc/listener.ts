/**
 * Where an agent accepts connections: TLS 1.3 with a client certificate of the fleet's authority, or a closed connection.
 *
 * The sockets go to gRPC's server as they are after the handshake. So ports, handshakes and their errors are in our hands,
 * and a listen address either works as given or has an error of its own.
 */
import { createServer, type Server, type TLSSocket } from 'node:tls';

import { limits } from '../../protocol/limits.ts';
import { addressText, type NetAddress } from '../../protocol/net-address.ts';
import { secureContext, systemCode, tlsOptions, type TlsIdentity } from '../../protocol/tls-identity.ts';
import { boundPort } from '../bound-port.ts';
import type { RpcLog } from './call-context.ts';

export interface ListenerOptions {
  readonly at: NetAddress;
  readonly tls: TlsIdentity;
  readonly log: RpcLog;
  /** Takes a connection whose peer has shown a certificate of the fleet. */
  readonly accept: (socket: TLSSocket) => void;
}

export class Listener {
  /** With the port that was taken, where 0 was asked for. */
  readonly at: NetAddress;
  readonly #server: Server;
  readonly #sockets: ReadonlySet<TLSSocket>;

  private constructor(at: NetAddress, server: Server, sockets: ReadonlySet<TLSSocket>) {
    this.at = at;
    this.#server = server;
    this.#sockets = sockets;
  }

  /** @throws ADDRESS_IN_USE, ADDRESS_UNAVAILABLE, CERTIFICATE_UNUSABLE */
  static async open(options: ListenerOptions): Promise<Listener> {
    const sockets = new Set<TLSSocket>();
    const server = tlsServer(options, sockets);
    const port = await boundPort(server, options.at);
    return new Listener({ address: options.at.address, port }, server, sockets);
  }

  /** Accepts nothing more; what is connected stays. */
  close(): void {
    this.#server.close();
  }

  closeConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

function tlsServer({ tls, log, accept }: ListenerOptions, sockets: Set<TLSSocket>): Server {
  // Checked first, where it has an error of its own.
  secureContext(tls);
  const server = createServer({
    ...tlsOptions(tls),
    requestCert: true,
    rejectUnauthorized: true,
    ALPNProtocols: ['h2'],
    handshakeTimeout: limits.rpcHandshakeMs,
    noDelay: true,
  });
  server.maxConnections = limits.rpcConnections;
  server.on('tlsClientError', (error, socket) => {
    log({ event: 'rpc-peer-refused', from: remoteText(socket), why: systemCode(error) });
  });
  server.on('secureConnection', (socket) => {
    if (!socket.authorized || socket.alpnProtocol !== 'h2') {
      log({ event: 'rpc-peer-refused', from: remoteText(socket), why: 'no certificate, or not HTTP/2' });
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    accept(socket);
  });
  return server;
}

const remoteText = (socket: TLSSocket): string =>
  socket.remoteAddress === undefined
    ? 'unknown'
    : addressText({ address: socket.remoteAddress, port: socket.remotePort ?? 0 });

/**
 * Where scrapers connect: HTTP on loopback, and HTTPS with a certificate of the fleet on the advertised address.
 *
 * Neither lets a peer hold much: few connections, small requests without bodies, one at a time on each connection, and time
 * limits for everything. Requests are served at a bounded rate in all; what comes faster waits, or is sent away.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

import { limits } from '../../protocol/limits.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import { identityOf, type Role } from '../../protocol/peer-identity.ts';
import { tlsOptions, type TlsIdentity } from '../../protocol/tls-identity.ts';
import { boundPort } from '../bound-port.ts';

export interface MetricsListenerOptions {
  readonly at: NetAddress;
  /** Whose certificates are asked for; `null` for plain HTTP. */
  readonly tls: TlsIdentity | null;
  readonly serve: RequestListener;
}

/** Who may see metrics: Prometheus, and the operator. */
const allowed: readonly Role[] = ['monitor', 'operator'];

const httpOptions: ServerOptions = {
  maxHeaderSize: limits.metricHeaderBytes,
  headersTimeout: limits.metricRequestMs,
  requestTimeout: limits.metricRequestMs,
  keepAliveTimeout: limits.metricKeepAliveMs,
  connectionsCheckingInterval: limits.metricRequestMs,
};

export class MetricsListener {
  /** With the port that was taken, where 0 was asked for. */
  readonly at: NetAddress;
  readonly #server: Server;

  private constructor(at: NetAddress, server: Server) {
    this.at = at;
    this.#server = server;
  }

  /** @throws ADDRESS_IN_USE, ADDRESS_UNAVAILABLE */
  static async open(options: MetricsListenerOptions): Promise<MetricsListener> {
    const server = httpServer(options);
    const port = await boundPort(server, options.at);
    return new MetricsListener({ address: options.at.address, port }, server);
  }

  /** Accepts nothing more and closes what is connected. */
  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

function httpServer({ tls, serve }: MetricsListenerOptions): Server {
  const server =
    tls === null
      ? createServer(httpOptions, guarded(serve))
      : createTlsServer(
          {
            ...httpOptions,
            ...tlsOptions(tls),
            ...{ requestCert: true, rejectUnauthorized: true, handshakeTimeout: limits.metricRequestMs },
          },
          guarded(serve),
        );
  server.maxConnections = limits.metricConnections;
  // A reader that takes nothing is let go.
  server.timeout = limits.metricRequestMs;
  server.on('clientError', (_error, socket) => {
    socket.destroy();
  });
  return server;
}

/** Keeps away who may not ask, and what is no request for metrics. */
function guarded(serve: RequestListener): RequestListener {
  /** Connections whose answer is not out: a second request on one of them would pile up. */
  const busy = new WeakSet<Socket>();
  return (request, response) => {
    const { socket } = request;
    if (!mayAsk(socket) || busy.has(socket) || hasBody(request)) {
      socket.destroy();
      return;
    }
    busy.add(socket);
    response.once('close', () => busy.delete(socket));
    serve(request, response);
  };
}

/** Over TLS, the certificate's role counts; on loopback, whoever is on this host. */
function mayAsk(socket: Socket): boolean {
  if (!(socket instanceof TLSSocket)) return true;
  const identity = socket.authorized ? identityOf(socket.getPeerCertificate()) : null;
  return identity !== null && allowed.includes(identity.role);
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

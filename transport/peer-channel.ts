/**
 * A connection to one agent, for whoever calls it: mutual TLS with a check of who answers, and errors that say why.
 *
 * It connects with the first call, and at once with any later call when it could not or was lost. No environment variable
 * redirects it.
 */
import { Client, ChannelCredentials, connectivityState, status, type ChannelOptions } from '@grpc/grpc-js';

import { P4Error, type ErrorFacts } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { addressText, grpcTarget, type NetAddress } from '../protocol/net-address.ts';
import { identityOf, type PeerIdentity } from '../protocol/peer-identity.ts';
import { diagnose } from './connection-diagnosis.ts';
import { errorOf, statusFacts, type CallStatus } from '../protocol/rpc-error.ts';
import { secureContext, type TlsIdentity } from '../protocol/tls-identity.ts';

export interface Peer extends NetAddress {
  /** Whose certificate the agent must show. */
  readonly host: HostName;
}

/** A way to a peer that is not dialled at its address. */
export interface PeerWay {
  /** Path of a Unix socket: whoever connects to it is connected to the peer. */
  readonly socketPath: string;
  /** What is in between, for people. */
  readonly through: string;
  /** Why the latest connection did not come to the peer, or broke off; `null` where nothing is known. */
  failure(): P4Error | null;
}

export interface PeerChannelOptions {
  readonly peer: Peer;
  readonly tls: TlsIdentity;
  /** Absent: the peer is dialled at its address. */
  readonly way?: PeerWay | null;
  /**
   * What is wrong with the identity that the server's certificate proves (`null`: it names nobody); `null` when nothing
   * is. Absent: CERTIFICATE_REFUSED unless it is the agent of the peer's host.
   */
  readonly refusal?: (found: PeerIdentity | null) => P4Error | null;
}

export class PeerChannel {
  readonly peer: Peer;
  readonly #connect: () => Client;
  readonly #tls: TlsIdentity;
  readonly #way: PeerWay | null;
  #client: Client;
  /** Why the server's identity was refused by the latest handshake that came so far. */
  #refused: P4Error | null = null;

  /** @throws CERTIFICATE_UNUSABLE */
  constructor({ peer, tls, way = null, refusal = (found) => wrongHost(peer, found) }: PeerChannelOptions) {
    this.peer = peer;
    this.#tls = tls;
    this.#way = way;
    const credentials = ChannelCredentials.createFromSecureContext(secureContext(tls), {
      checkServerIdentity: (_host, certificate) => {
        this.#refused = refusal(identityOf(certificate));
        return this.#refused ?? undefined;
      },
    });
    const target = way === null ? grpcTarget(peer) : `unix:${way.socketPath}`;
    this.#connect = () => new Client(target, credentials, channelOptions(peer));
    this.#client = this.#connect();
  }

  /** For one call; closed by `close`. */
  get client(): Client {
    // gRPC would wait, ever longer, before it dials again, and fail what is asked until then.
    if (this.#isIn(connectivityState.TRANSIENT_FAILURE)) {
      this.#client.close();
      this.#client = this.#connect();
    }
    return this.#client;
  }

  /** Calls under way fail with CANCELLED. */
  close(): void {
    this.#client.close();
  }

  /** Makes of a call's bad end the error to show: the one the agent sent, else the reason as far as it can be found out. */
  async failure(end: CallStatus, method: string): Promise<P4Error> {
    const sent = errorOf(end);
    if (sent !== null) return sent;
    if (end.code === status.CANCELLED) return new P4Error('CANCELLED', { by: 'the caller', method });
    if (end.code === status.UNAVAILABLE) return this.#connectionFailure();
    if (end.code !== status.DEADLINE_EXCEEDED)
      return new P4Error('RPC_FAILED', { ...this.#facts(), method, ...statusFacts(end) });
    if (this.#isIn(connectivityState.READY)) return new P4Error('RPC_TIMED_OUT', { ...this.#facts(), method });
    const known = this.#refused ?? this.#way?.failure();
    return known ?? new P4Error('AGENT_UNREACHABLE', { ...this.#facts(), why: 'no answer in time' });
  }

  #isIn(state: connectivityState): boolean {
    return this.#client.getChannel().getConnectivityState(false) === state;
  }

  async #connectionFailure(): Promise<P4Error> {
    if (this.#refused !== null) return this.#refused;
    const broken = this.#way?.failure() ?? null;
    if (broken !== null) return broken;
    const socketPath = this.#way?.socketPath ?? null;
    const found = await diagnose({ at: this.peer, socketPath, tls: this.#tls, serverName: this.peer.host });
    switch (found.kind) {
      case 'certificate-refused':
        return new P4Error('CERTIFICATE_REFUSED', { ...this.#facts(), refusedBy: found.by, why: found.why });
      case 'unreachable':
        return this.#way?.failure() ?? new P4Error('AGENT_UNREACHABLE', { ...this.#facts(), why: found.why });
      case 'answers':
        return new P4Error('AGENT_UNREACHABLE', { ...this.#facts(), why: 'the connection was lost' });
    }
  }

  #facts(): ErrorFacts {
    const { host, address, port } = this.peer;
    return { host, address, port, ...(this.#way === null ? {} : { through: this.#way.through }) };
  }
}

function wrongHost(peer: Peer, found: PeerIdentity | null): P4Error | null {
  if (found?.role === 'agent' && found.name === peer.host) return null;
  return new P4Error('CERTIFICATE_REFUSED', {
    address: addressText(peer),
    expected: `agent ${peer.host}`,
    found: found === null ? 'a certificate that names nobody' : `${found.role} ${found.name}`,
  });
}

const channelOptions = (peer: Peer): ChannelOptions => ({
  // The name in the handshake: an IP address is none.
  'grpc.ssl_target_name_override': peer.host,
  'grpc.default_authority': peer.host,
  'grpc.max_receive_message_length': limits.grpcMessageBytes,
  'grpc.max_send_message_length': limits.grpcMessageBytes,
  'grpc.keepalive_time_ms': limits.rpcKeepaliveMs,
  'grpc.keepalive_timeout_ms': limits.rpcKeepaliveAnswerMs,
  'grpc.initial_reconnect_backoff_ms': limits.rpcReconnectMs,
  'grpc.max_reconnect_backoff_ms': limits.rpcReconnectMostMs,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  // A call is repeated by whoever knows what that means, never by gRPC.
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  // Its own connection: two channels to one address may expect different hosts there.
  'grpc.use_local_subchannel_pool': 1,
});

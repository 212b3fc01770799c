/**
 * Shows an agent's metrics: plain on loopback, over mutual TLS on its advertised address where that is another.
 *
 * An address that cannot be listened at is told of and tried again; rings are served all the same, because a fleet without
 * figures is better than none.
 */
import type { RequestListener } from 'node:http';

import type { AgentConfig } from '../../protocol/agent-config.ts';
import { P4Error } from '../../protocol/errors.ts';
import { isLoopback } from '../../protocol/ip-address.ts';
import { limits } from '../../protocol/limits.ts';
import { addressText, type NetAddress } from '../../protocol/net-address.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import type { Log } from '../log.ts';
import { lossText } from '../outcome.ts';
import { MetricsListener } from './metrics-listener.ts';

export interface MetricsServerOptions {
  readonly config: Pick<AgentConfig, 'listen'>;
  /** 0 for any that is free. */
  readonly port: number;
  readonly tls: TlsIdentity;
  readonly serve: RequestListener;
  readonly log: Log;
}

interface Place {
  readonly at: NetAddress;
  readonly tls: TlsIdentity | null;
  listener: MetricsListener | null;
  failure: P4Error | null;
}

/** Where metrics are shown, for people and for the fleet. */
export interface MetricsPlaces {
  readonly urls: readonly string[];
  /** Why one of them cannot be listened at; empty where all are. */
  readonly fault: string;
}

const loopback = '127.0.0.1';

export class MetricsServer {
  readonly #options: MetricsServerOptions;
  readonly #places: readonly Place[];
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  private constructor(options: MetricsServerOptions) {
    this.#options = options;
    const { config, port, tls } = options;
    const place = (address: string, identity: TlsIdentity | null): Place => ({
      ...{ at: { address, port }, tls: identity },
      ...{ listener: null, failure: null },
    });
    const advertised = config.listen[0]?.address ?? loopback;
    this.#places = [place(loopback, null), ...(isLoopback(advertised) ? [] : [place(advertised, tls)])];
  }

  /** Returns when each address was tried once. */
  static async start(options: MetricsServerOptions): Promise<MetricsServer> {
    const server = new MetricsServer(options);
    await server.#open();
    return server;
  }

  /** On loopback; `null` while it is not listened at. */
  get plain(): NetAddress | null {
    return this.#places[0]?.listener?.at ?? null;
  }

  get places(): MetricsPlaces {
    const urls = this.#places.flatMap(({ tls, listener }) =>
      listener === null ? [] : [`${tls === null ? 'http' : 'https'}://${addressText(listener.at)}/metrics`],
    );
    const failed = this.#places.flatMap(({ failure }) => (failure === null ? [] : [lossText(failure)]));
    return { urls, fault: failed.join('; ') };
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { listener } of this.#places) listener?.close();
  }

  async #open(): Promise<void> {
    for (const place of this.#places) if (place.listener === null) await this.#listen(place);
    if (this.#isStopped || this.#places.every(({ listener }) => listener !== null)) return;
    this.#timer = setTimeout(() => {
      void this.#open();
    }, limits.metricRetryMs).unref();
  }

  async #listen(place: Place): Promise<void> {
    const { serve, log } = this.#options;
    const { at, tls, failure } = place;
    try {
      const listener = await MetricsListener.open({ at, tls, serve });
      if (this.#isStopped) listener.close();
      else place.listener = listener;
      place.failure = null;
      log({ event: 'metrics-listening', address: addressText(listener.at), tls: tls !== null });
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
      place.failure = error;
      // Once for each reason, not for each try.
      if (failure?.code !== error.code)
        log({ event: 'metrics-not-listening', address: addressText(at), code: error.code });
    }
  }
}

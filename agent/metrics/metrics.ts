/** An agent's metrics put together: what counts, what collects, and where it is shown. */
import type { AgentConfig } from '../../protocol/agent-config.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import type { RingName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { MetricSamples } from '../../protocol/messages.ts';
import type { Journal } from '../journal/journal.ts';
import type { Log } from '../log.ts';
import { expiriesOf } from './agent-samples.ts';
import { CallMeter } from './call-meter.ts';
import { Collection, type CollectionSources, type Meters } from './collection.ts';
import { EventLoopDelay } from './event-loop-delay.ts';
import { GpuWatch } from './gpu-figures.ts';
import { HostFigures } from './host-figures.ts';
import type { JournalMeter } from './journal-meter.ts';
import { metricsPages } from './metrics-pages.ts';
import { MetricsServer, type MetricsPlaces } from './metrics-server.ts';
import { RingMeters } from './ring-meters.ts';
import { sampleMessages } from './sample-messages.ts';
import { Scrapes } from './scrapes.ts';

export interface MetricsOptions {
  readonly config: AgentConfig;
  readonly tls: TlsIdentity;
  readonly journal: Pick<Journal, 'admittedAt' | 'stats'>;
  /** Counts since the journal was opened. */
  readonly journalMeter: JournalMeter;
  readonly log: Log;
}

export class Metrics {
  readonly meters: Meters;
  readonly #options: MetricsOptions;
  #server: MetricsServer | null = null;
  #collection: Collection | null = null;
  #looking: NodeJS.Timeout | undefined;

  constructor(options: MetricsOptions) {
    this.#options = options;
    const { config, journalMeter } = options;
    const calls = new CallMeter();
    const rings = new RingMeters({
      suspended: (code) => {
        calls.suspended(code);
      },
      nowMs: () => performance.now(),
    });
    const host = new HostFigures({ folders: { state: config.stateFolder, slices: config.slicesFolder } });
    this.meters = { rings, calls, host, journal: journalMeter, loop: new EventLoopDelay(), gpus: new GpuWatch() };
  }

  /** On loopback; `null` where it is not listened at. */
  get plain(): NetAddress | null {
    return this.#server?.plain ?? null;
  }

  get places(): MetricsPlaces {
    return this.#server?.places ?? { urls: [], fault: '' };
  }

  /**
   * What is not of other rings than this one.
   * @param ring `null` for all
   * @returns `null` before `serve`
   */
  async samples(ring: RingName | null): Promise<MetricSamples | null> {
    const samples = await this.#collection?.recent();
    return samples === undefined ? null : sampleMessages(samples, ring);
  }

  journalFailed(): void {
    this.#options.journalMeter.failures += 1;
  }

  /** Listens where the configuration says. */
  async serve(sources: Omit<CollectionSources, 'expiries' | 'journal' | 'admittedAt'>): Promise<void> {
    const { config, tls, journal, log } = this.#options;
    const { port = 0 } = config.metrics ?? {};
    const collection = new Collection(
      {
        ...sources,
        journal: () => journal.stats(),
        admittedAt: (load) => journal.admittedAt(load),
        expiries: expiriesOf(tls),
      },
      this.meters,
    );
    this.#collection = collection;
    this.#looking = setInterval(() => {
      collection.lookAtSpeeds().catch((error: unknown) => {
        log({ event: 'metrics-bug', stack: error instanceof Error ? (error.stack ?? error.message) : String(error) });
      });
    }, limits.speedStretchMs).unref();
    const scrapes = new Scrapes(collection);
    const { readiness } = sources;
    const serve = metricsPages({ text: (format) => scrapes.text(format), readiness, log });
    this.#server = await MetricsServer.start({ config, port, tls, serve, log });
  }

  stop(): void {
    clearInterval(this.#looking);
    this.#server?.stop();
    this.meters.loop.stop();
    this.meters.gpus.stop();
  }
}

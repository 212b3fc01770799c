/**
 * Everything that a scrape shows, gathered at once: values belong to one moment of the event loop, but for those of stages and
 * host, which are what was told last. A stage or a disk that hangs is not waited for.
 */
import { setTimeout as pause } from 'node:timers/promises';

import type { LoadId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { JournalStats } from '../journal/journal.ts';
import type { Link } from '../links/link.ts';
import type { Readiness } from '../readiness.ts';
import { isHead, type AgentState, type LiveRing } from '../state.ts';
import { addCalls, addExpiries, addJournal, addProcess, type Expiries } from './agent-samples.ts';
import type { CallMeter } from './call-meter.ts';
import type { EventLoopDelay } from './event-loop-delay.ts';
import type { GpuWatch } from './gpu-figures.ts';
import type { HostFigures } from './host-figures.ts';
import type { JournalMeter } from './journal-meter.ts';
import { Recent } from './recent.ts';
import type { RingMeter } from './ring-meter.ts';
import type { RingMeters } from './ring-meters.ts';
import { addRing } from './ring-samples.ts';
import { Samples } from './samples.ts';
import type { FigureSource } from './stage-figures.ts';
import { addStages } from './stage-samples.ts';

export interface CollectionSources {
  readonly state: () => AgentState;
  readonly readiness: () => Readiness;
  readonly journal: () => JournalStats;
  /** When a load was admitted, in milliseconds since 1970. */
  readonly admittedAt: (load: LoadId) => number | null;
  readonly linksOf: (load: LoadId) => readonly Link[];
  /** The advertised address where it is not this host's any more, else empty. */
  readonly addressMissing: () => string;
  readonly stages: FigureSource;
  readonly expiries: Expiries;
}

export interface Meters {
  readonly rings: RingMeters;
  readonly journal: JournalMeter;
  readonly calls: CallMeter;
  readonly loop: EventLoopDelay;
  readonly host: HostFigures;
  readonly gpus: GpuWatch;
}

export class Collection {
  readonly #sources: CollectionSources;
  readonly #meters: Meters;
  /** Spent on collecting and writing. */
  spentSeconds = 0;
  readonly #recent = new Recent<Samples>();

  constructor(sources: CollectionSources, meters: Meters) {
    this.#sources = sources;
    this.#meters = meters;
  }

  /** Those of the last second, or new ones. */
  recent(): Promise<Samples> {
    return this.#recent.of(() => this.gather());
  }

  /** Notes how fast rings are that are in the first hour of their load. */
  async lookAtSpeeds(): Promise<void> {
    const { stages } = this.#sources;
    if (!this.#youngRings().some(({ meter }) => meter.firstHour.isNews(meter.interToken.count))) return;
    await stages.ask();
    for (const { ring, meter } of this.#youngRings()) {
      const cells = stages
        .figures()
        .flatMap(({ load, report }) => (load === ring.load ? [report?.values.kvCellsUsed ?? 0] : []));
      const { contextTokens, sessions } = ring.plan;
      const share = Math.max(0, ...cells) / (contextTokens * sessions);
      meter.firstHour.look(meter.speed(share, performance.now()));
    }
  }

  /** Whose heads are here. */
  #youngRings(): readonly { readonly ring: LiveRing; readonly meter: RingMeter }[] {
    const { state, admittedAt } = this.#sources;
    const { rings, host } = state();
    return [...rings.values()].flatMap((ring) => {
      const meter = this.#meters.rings.of(ring.load);
      if (ring.kind === 'claimed' || meter === undefined || !isHead(ring, host)) return [];
      const admittedMs = admittedAt(ring.load);
      return admittedMs !== null && Date.now() - admittedMs < limits.firstHourMs ? [{ ring, meter }] : [];
    });
  }

  async gather(): Promise<Samples> {
    // Both go on by themselves when they are not awaited any more.
    const figures = Promise.all([this.#sources.stages.ask(), this.#meters.host.read()]);
    await Promise.race([figures, pause(limits.metricFiguresMs, null, { ref: false })]);
    return this.#samples();
  }

  #samples(): Samples {
    const { state, readiness, journal, addressMissing, expiries } = this.#sources;
    const { journal: journalMeter, calls, loop, host, gpus } = this.#meters;
    const nowMs = performance.now();
    const samples = new Samples(nowMs);
    addProcess(samples);
    samples.addState('p4_agent_ready', {}, readiness().isReady);
    samples.addTimes('p4_agent_event_loop_delay_seconds', {}, loop.delays);
    samples.add('p4_agent_metrics_seconds_total', {}, this.spentSeconds);
    addCalls(samples, calls);
    addExpiries(samples, expiries);
    samples.addState('p4_advertised_address_missing', {}, addressMissing() !== '');
    addJournal(samples, { stats: journal(), meter: journalMeter });
    this.#addRings(samples, state(), nowMs);
    host.add(samples);
    gpus.add(samples, nowMs);
    this.spentSeconds += (performance.now() - nowMs) / 1000;
    return samples;
  }

  #addRings(samples: Samples, { rings, host }: AgentState, nowMs: number): void {
    const { stages, linksOf, admittedAt, readiness } = this.#sources;
    const ready = readiness().rings.filter((each) => each.state === 'ready');
    const figures = stages.figures();
    for (const ring of rings.values()) {
      const meter = this.#meters.rings.of(ring.load);
      if (meter === undefined) continue;
      const linked = new Set<number>(linksOf(ring.load).map(({ edge }) => edge.source));
      const isReady = ready.some((each) => each.ring === ring.ring);
      addRing(samples, { ring, isReady, meter, host, linked, admittedAt: admittedAt(ring.load), nowMs });
      if (ring.kind === 'claimed') continue;
      addStages(samples, { ring, meter, figures: figures.filter(({ load }) => load === ring.load), nowMs });
    }
  }
}

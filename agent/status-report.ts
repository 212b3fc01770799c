/** What an agent says of itself, its rings, stages, links and journal. */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { cpusOfGroups, groupMessage } from '../protocol/cpu-topology.ts';
import type { P4Error } from '../protocol/errors.ts';
import { cpusText } from '../protocol/inventory.ts';
import type { LoadId, NodeIndex, RingName } from '../protocol/ids.ts';
import type * as messages from '../protocol/messages.ts';
import { freeBytesFor } from '../model/slice-folder.ts';
import { limits } from '../protocol/limits.ts';
import { threadsOf, type StagePlan } from '../protocol/plan.ts';
import { protocolVersion } from '../protocol/protocol-version.ts';
import type { StageReport } from '../protocol/stage-control.ts';
import { availableMemory } from './available-memory.ts';
import { HostCpuReader } from './cpus/host-cpus.ts';
import { runningRequests, type HeadState } from './head/head-state.ts';
import type { JournalStats } from './journal/journal.ts';
import type { MetricsPlaces } from './metrics/metrics-server.ts';
import type { Link } from './links/link.ts';
import type { AgentState, ClaimedRing, LiveRing, NodeState, RingState } from './state.ts';
import { lossText } from './outcome.ts';
import { release } from './release.ts';
import { hasSilentStage } from './ring-standing.ts';
import type { StageAddress } from './stages.ts';

export interface StatusSources {
  readonly state: () => AgentState;
  /** The advertised address where it is not this host's any more, else empty. */
  readonly addressMissing: () => string;
  readonly journal: () => JournalStats;
  /** Why the journal cannot be written; `null` while it can. */
  readonly journalFailure: () => P4Error | null;
  readonly linksOf: (load: LoadId) => readonly Link[];
  /** `null` when the stage does not answer in time. */
  readonly stageReport: (of: StageAddress) => Promise<StageReport | null>;
  /** For how long it has not answered; 0 while it does. */
  readonly stageSilentMs: (of: StageAddress) => number;
  readonly slicesFolder: string;
  readonly metrics: () => MetricsPlaces;
  /** `null` where nothing is counted. */
  readonly samples: (ring: RingName | null) => Promise<messages.MetricSamples | null>;
}

/** What is shown of a stage that does not answer. */
const nothingRun: StageReport = {
  residentBytes: 0,
  cpuSeconds: 0,
  decodes: 0,
  prefilledRows: 0,
  decodedRows: 0,
  recomputedRows: 0,
  paddingRows: 0,
  computeSeconds: 0,
  kvCellsUsed: 0,
  threads: 0,
  cpus: '',
  kvCellsKept: 0,
};

export class StatusReport {
  readonly #sources: StatusSources;
  readonly #cpus = new HostCpuReader();

  constructor(sources: StatusSources) {
    this.#sources = sources;
  }

  async describe(): Promise<messages.AgentDescription> {
    const { state, slicesFolder } = this.#sources;
    const { groups, quota } = this.#cpus.read();
    return {
      host: state().host,
      version: release,
      protocol: protocolVersion.major,
      machineId: machineId(),
      cores: cpusOfGroups(groups).length,
      memoryBytes: String(totalmem()),
      pid: process.pid,
      addressMissing: this.#sources.addressMissing(),
      memoryAvailableBytes: String(await availableMemory()),
      metricsUrls: this.#sources.metrics().urls,
      metricsFault: this.#sources.metrics().fault,
      slicesFreeBytes: String(await freeBytesFor(slicesFolder)),
      cpuGroups: groups.map(groupMessage),
      cpuQuota: quota,
    };
  }

  /** @param ring `null` for all */
  async status(ring: RingName | null, withSamples = false): Promise<messages.StatusReply> {
    const rings = [...this.#sources.state().rings.values()].filter((state) => ring === null || state.ring === ring);
    const { state, records, databaseBytes } = this.#sources.journal();
    const failure = this.#sources.journalFailure();
    const cpu = process.cpuUsage();
    return {
      agent: await this.describe(),
      rings: await Promise.all(rings.map((each) => this.#ring(each))),
      journal: { state, records: String(records), bytes: String(databaseBytes), reason: failure?.message ?? '' },
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
      residentBytes: String(process.memoryUsage.rss()),
      samples: withSamples ? await this.#sources.samples(ring) : null,
    };
  }

  async #ring(ring: RingState): Promise<messages.RingStatus> {
    const named = { ring: ring.ring, loadId: ring.load, planDigest: ring.planDigest };
    if (ring.kind === 'claimed') {
      return { ...named, ...claimStatus(ring), suspendedMs: '0', nodes: [], links: [], head: null };
    }
    const nodes = await Promise.all([...ring.nodes].map(([node, state]) => this.#node(ring, node, state)));
    return {
      ...named,
      phase: this.#phaseOf(ring),
      reason: ring.suspension === null ? '' : lossText(ring.suspension.error),
      suspendedMs: suspendedMs(ring),
      nodes,
      links: this.#sources.linksOf(ring.load).map(linkStatus),
      head: ring.head === null ? null : headStatus(ring.head),
    };
  }

  #phaseOf(ring: LiveRing): string {
    if (ring.suspension !== null) return 'suspended';
    return hasSilentStage(ring, this.#sources.stageSilentMs) ? 'silent' : ring.phase.kind;
  }

  async #node(ring: LiveRing, node: NodeIndex, state: NodeState): Promise<messages.NodeStatus> {
    const answer = state.kind === 'loaded' ? await this.#sources.stageReport({ load: ring.load, node }) : null;
    const report = answer ?? nothingRun;
    const { first = 0, last = 0 } = ring.plan.stages[node]?.layers ?? {};
    const silentMs = state.kind === 'loaded' ? this.#sources.stageSilentMs({ load: ring.load, node }) : 0;
    return {
      ...{ node, host: this.#sources.state().host, firstLayer: first, lastLayer: last },
      state: silentMs > 0 ? 'silent' : state.kind,
      reason: state.kind === 'lost' ? lossText(state.error) : silentMs > 0 ? silenceText(silentMs) : '',
      pid: state.kind === 'loaded' ? state.pid : 0,
      residentBytes: String(report.residentBytes),
      cpuSeconds: report.cpuSeconds,
      decodes: String(report.decodes),
      prefilledRows: String(report.prefilledRows),
      decodedRows: String(report.decodedRows),
      paddingRows: String(report.paddingRows),
      computeSeconds: report.computeSeconds,
      kvCellsUsed: report.kvCellsUsed,
      ...cpusOf(report, ring.plan.stages[node]),
      kvCellsKept: report.kvCellsKept,
    };
  }
}

const silenceText = (ms: number): string =>
  `it has not answered for ${ms / 1000} s; after ${(limits.stageSilences * limits.stageHeartbeatMs) / 1000} s it is ended and started again`;

/** What a stage keeps to; what it was told, where it does not say. */
function cpusOf(report: StageReport, told: StagePlan | undefined): Pick<messages.NodeStatus, 'threads' | 'cpus'> {
  if (report.threads > 0) return { threads: report.threads, cpus: report.cpus };
  return { threads: threadsOf(told?.threads ?? 'auto'), cpus: cpusText(told?.confinement?.cpus ?? []) };
}

const claimStatus = ({ fault }: ClaimedRing): Pick<messages.RingStatus, 'phase' | 'reason'> =>
  fault === null
    ? { phase: 'claimed', reason: 'the stages ended with the agent or the machine: load the same plan again' }
    : { phase: 'unreadable', reason: `${lossText(fault)}. ${fault.rule.says} ${fault.rule.remedy}` };

const suspendedMs = ({ suspension }: LiveRing): string =>
  suspension === null ? '0' : String(Math.max(1, Math.round(performance.now() - suspension.sinceMs)));

function linkStatus(link: Link): messages.LinkStatus {
  const { source, destination } = link.edge;
  const { frames, bytes, bytesAcknowledged, unacknowledged, ackP50Ms, ackP99Ms } = link.stats();
  return {
    ...{ source, destination, peer: link.peer, unacknowledged, ackP50Ms, ackP99Ms },
    ...{ frames: String(frames), bytes: String(bytes), bytesAcknowledged: String(bytesAcknowledged) },
  };
}

function headStatus(head: HeadState): messages.HeadStatus {
  const kept = head.kept.entries.filter(({ isWhole }) => isWhole);
  return {
    sessionsOpen: head.sessions.size,
    sessionsLimit: head.slots.length,
    prefixesKept: kept.length,
    prefixesLimit: head.kept.most,
    rowsKept: kept.reduce((sum, { tokens }) => sum + tokens.length, 0),
    requestsRunning: runningRequests(head.requests),
    requestsFinished: String(head.finished),
    tokensEmitted: String(head.emitted),
  };
}

/** Empty where the machine has none. */
function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim();
  } catch {
    return '';
  }
}

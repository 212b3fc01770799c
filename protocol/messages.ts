/**
 * The messages of p4.proto as they look in TypeScript, field for field.
 *
 * Reading: every field is there; uint64 is a decimal string, an absent message is `null`, an absent choice has no tag.
 * A peer may send any value of a field's type: the edge that takes a request parses it into the branded types of ids.ts.
 */

/** A uint64 in decimal. */
export type Uint64Text = string;

export type DescribeRequest = Readonly<Record<string, never>>;

export interface AgentDescription {
  readonly host: string;
  readonly version: string;
  /** Major version of the protocol. */
  readonly protocol: number;
  readonly machineId: string;
  /** CPUs that may be used. */
  readonly cores: number;
  readonly memoryBytes: Uint64Text;
  readonly pid: number;
  /** The advertised address where it is no longer the host's own (A3), else empty. */
  readonly addressMissing: string;
  /** What could be used without swapping, as the kernel estimates it. */
  readonly memoryAvailableBytes: Uint64Text;
  /** Room on the file system of the folder of slices. */
  readonly slicesFreeBytes: Uint64Text;
  /** The CPUs by where they lie (protocol/cpu-topology.ts); none from an agent that does not say. */
  readonly cpuGroups: readonly CpuGroupMessage[];
  /** CPUs' worth of time that its control group gives it; 0 for no limit. */
  readonly cpuQuota: number;
  /** Where the agent shows its metrics, on loopback first. */
  readonly metricsUrls: readonly string[];
  /** Why it cannot show them at one of its addresses, else empty. */
  readonly metricsFault: string;
}

export interface CpuGroupMessage {
  readonly numaNode: number;
  readonly capacity: number;
  /** CPUs of each core, as in `0-3,8`. */
  readonly cores: readonly string[];
}

export interface LoadRequest {
  readonly ring: string;
  readonly generation: Uint64Text;
  readonly loadId: string;
  readonly planDigest: string;
  /** The whole plan after defaults, as JSON in the plan file's form. */
  readonly plan: string;
  /** One for each stage of the ring, in order. */
  readonly stages: readonly StagePlacement[];
}

export interface StagePlacement {
  readonly sliceId: string;
  readonly sliceBytes: Uint64Text;
  /** Where the stage's agent listens. */
  readonly address: string;
  readonly port: number;
}

export interface LoadProgress {
  readonly node: number;
  /** One of: starting, loading, loaded, confirmed. */
  readonly phase: string;
  /** 0 to 1. */
  readonly fraction: number;
  readonly pid: number;
}

export interface RingCommand {
  readonly ring: string;
  readonly generation: Uint64Text;
}

export interface LinkReply {
  readonly links: readonly LinkState[];
}

export interface LinkState {
  readonly source: number;
  readonly destination: number;
  readonly address: string;
  /** Common name of the certificate the receiver showed. */
  readonly peer: string;
}

export interface ProbeReply {
  readonly roundMs: number;
}

export interface UnloadReply {
  readonly stages: number;
}

export interface StatusRequest {
  /** Empty: every ring. */
  readonly ring: string;
  /** Whether the answer shall have metrics, too; absent: no. */
  readonly samples?: boolean;
}

export interface StatusReply {
  readonly agent: AgentDescription | null;
  readonly rings: readonly RingStatus[];
  readonly journal: JournalStatus | null;
  readonly cpuSeconds: number;
  readonly residentBytes: Uint64Text;
  /** `null` where they were not asked for, or nothing is counted. */
  readonly samples: MetricSamples | null;
}

/** What protocol/metric-table.ts names, at one moment: of the agent, its journal and host, and of the rings asked for. */
export interface MetricSamples {
  /** On a clock of this agent process that only goes forward. */
  readonly atSeconds: number;
  readonly samples: readonly MetricSample[];
}

export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Of a histogram: the sum of what was observed. */
  readonly value: number;
  /** Of a histogram: how much was. */
  readonly count: Uint64Text;
}

export interface JournalStatus {
  readonly state: string;
  readonly records: Uint64Text;
  readonly bytes: Uint64Text;
  /** Why it failed; empty while it is open. */
  readonly reason: string;
}

export interface RingStatus {
  readonly ring: string;
  /** One of: claimed, unreadable, loading, loaded, linking, linked, probing, ready, suspended, ending. */
  readonly phase: string;
  readonly reason: string;
  /** How long it has been suspended on this host; 0 where it is not. */
  readonly suspendedMs: Uint64Text;
  readonly loadId: string;
  readonly planDigest: string;
  readonly nodes: readonly NodeStatus[];
  readonly links: readonly LinkStatus[];
  /** At the head's agent only. */
  readonly head: HeadStatus | null;
}

export interface NodeStatus {
  readonly node: number;
  readonly host: string;
  readonly firstLayer: number;
  readonly lastLayer: number;
  /** One of: starting, loading, loaded, lost, stopping. */
  readonly state: string;
  readonly reason: string;
  readonly pid: number;
  readonly residentBytes: Uint64Text;
  readonly cpuSeconds: number;
  readonly decodes: Uint64Text;
  readonly prefilledRows: Uint64Text;
  readonly decodedRows: Uint64Text;
  readonly paddingRows: Uint64Text;
  readonly computeSeconds: number;
  readonly kvCellsUsed: number;
  /** Threads that compute; 0 from an agent that does not say. */
  readonly threads: number;
  /** CPUs that it keeps to, as in `0-3,8`; empty for all that the host gives to p4. */
  readonly cpus: string;
  /** Rows that ended sessions left, for those that begin alike. */
  readonly kvCellsKept: number;
}

export interface LinkStatus {
  readonly source: number;
  readonly destination: number;
  readonly peer: string;
  readonly frames: Uint64Text;
  readonly bytes: Uint64Text;
  readonly bytesAcknowledged: Uint64Text;
  readonly ackP50Ms: number;
  readonly ackP99Ms: number;
  readonly unacknowledged: number;
}

export interface HeadStatus {
  readonly sessionsOpen: number;
  readonly sessionsLimit: number;
  /** Ended sessions whose rows all stages keep, how many may be, and their rows. */
  readonly prefixesKept: number;
  readonly prefixesLimit: number;
  readonly rowsKept: number;
  readonly requestsRunning: number;
  readonly requestsFinished: Uint64Text;
  readonly tokensEmitted: Uint64Text;
}

export interface OpenSessionRequest {
  readonly ring: string;
  readonly generation: Uint64Text;
  /** How long the session stays when its lease stream has ended. */
  readonly lingerMs: number;
  /** 0: a new one. Else one that stands: the stream is its lease from now on. */
  readonly session: number;
  /** Of a new one: see p4.proto. */
  readonly cacheKey: string;
  /** Whether to wait where all sessions are taken. */
  readonly waits: boolean;
}

export interface SessionOpened {
  /** 0 while the call waits for a session that ends. */
  readonly session: number;
  readonly contextTokens: number;
  /** Calls that wait before this one. */
  readonly ahead: number;
}

export type SubmitRequest = SubmitFields & SubmitPrompt;

export interface SubmitFields {
  readonly ring: string;
  readonly generation: Uint64Text;
  readonly session: number;
  readonly parseSpecial: boolean;
  /** Options of sampling.ts as JSON; absent ones take their defaults. */
  readonly sampling: string;
  readonly maxTokens: number;
  readonly stop: readonly string[];
  readonly ignoreEnd: boolean;
}

export type SubmitPrompt =
  | { readonly prompt: 'text'; readonly text: string }
  | { readonly prompt: 'tokens'; readonly tokens: TokenList }
  /** The peer chose neither. */
  | { readonly prompt?: never };

export interface TokenList {
  readonly ids: readonly number[];
}

export interface SubmitReply {
  readonly request: number;
  readonly promptTokens: number;
}

export interface SessionCommand {
  readonly ring: string;
  readonly generation: Uint64Text;
  readonly session: number;
}

/** `session` 0: whichever the request belongs to. */
export interface RequestCommand extends SessionCommand {
  readonly request: number;
}

export interface GatherRequest extends RequestCommand {
  /** Index of the first token wanted, inclusive. */
  readonly from: number;
}

export type GatherEvent =
  | { readonly event: 'token'; readonly token: GatheredToken }
  | { readonly event: 'end'; readonly end: GatheredEnd }
  | { readonly event: 'paused'; readonly paused: GatheredPause }
  | { readonly event: 'resumed'; readonly resumed: GatheredResume }
  /** The peer chose neither. */
  | { readonly event?: never };

/** The ring lost a part; the request waits for it (R1). */
export interface GatheredPause {
  readonly code: string;
  readonly text: string;
  /** Empty where it is not known which stage is lost; `node` in decimal. */
  readonly host: string;
  readonly node: string;
  /** Milliseconds from now after which the request fails. */
  readonly remainingMs: number;
}

export type GatheredResume = Readonly<Record<string, never>>;

export interface GatheredToken {
  readonly index: number;
  readonly token: number;
  /** Whole characters that this token released. */
  readonly text: string;
}

export interface GatheredEnd {
  /** A finish reason of finish.ts. */
  readonly reason: string;
  /** Text that was held back and turned out to be no stop string. */
  readonly text: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** For ring-lost: which stage on which host. */
  readonly detail: string;
}

export interface CancelReply {
  readonly wasRunning: boolean;
}

export type CloseSessionReply = Readonly<Record<string, never>>;

export interface Settlement {
  /** One of: running, ending (its receipts are on their way), settled. */
  readonly state: string;
  readonly reason: string;
  readonly stages: readonly SettledStage[];
  readonly emitted: number;
  /** Whose the request is. */
  readonly session: number;
}

export interface SettledStage {
  readonly node: number;
  readonly host: string;
  readonly firstLayer: number;
  readonly lastLayer: number;
  readonly prefilled: number;
  readonly decoded: number;
  readonly reused: number;
  readonly recomputed: number;
  readonly padding: number;
  readonly computeMs: number;
}

/** Coded by hop-codec.ts, not by proto-loader. */
export interface HopFrame {
  /** A frame of hop-frame.ts. */
  readonly frame: Uint8Array<ArrayBuffer>;
  /** CRC32C of `frame` (E3), unsigned. */
  readonly crc32c: number;
}

/** Coded by hop-codec.ts, not by proto-loader. */
export interface HopAck {
  /** Frames of this stream that the receiver has finished, in all. */
  readonly frames: number;
  /** Whether a stage of the ring loads at the receiver's agent or behind it (R1). */
  readonly loading: boolean;
}

/**
 * What an agent and one of its stages say to each other.
 *
 * A stage listens on two Unix sockets in a folder of its own. `control.sock` carries JSON messages, each behind a u32
 * little-endian length, and is served whatever the stage computes. `data.sock` carries hop frames, each behind a u32
 * length, and is served by the thread that computes; its first message each way is JSON: `DataHello`, `DataAnswer`.
 */
import type { ErrorCode, ErrorFacts } from './errors.ts';
import type { NodeIndex, RingName, SliceId, TokenId } from './ids.ts';
import type { DecodeMode, Device, KvType, LayerRange, StageConfinement, WireType } from './plan.ts';

export const stageProtocolVersion = 4;

export const controlSocketName = 'control.sock';
export const dataSocketName = 'data.sock';

/** From the agent. `id` comes back in the answer. */
export type StageCommand =
  | { readonly kind: 'hello'; readonly protocol: number }
  | ({ readonly kind: 'load' } & StageLoad)
  | { readonly kind: 'vocabulary'; readonly id: number }
  | {
      readonly kind: 'tokenize';
      readonly id: number;
      readonly text: string;
      readonly addSpecial: boolean;
      readonly parseSpecial: boolean;
    }
  | { readonly kind: 'report'; readonly id: number }
  | { readonly kind: 'stop' };

/** Everything a stage needs to load its slice. The generation is told here and kept in memory only (G4). */
export interface StageLoad {
  readonly ring: RingName;
  readonly node: NodeIndex;
  readonly stages: number;
  /** Decimal. */
  readonly generation: string;
  readonly slicePath: string;
  readonly sliceId: SliceId;
  readonly layers: LayerRange;
  readonly modelLayers: number;
  readonly contextTokens: number;
  readonly sessions: number;
  /** Kept prefixes that there may be at once. */
  readonly keptPrefixes: number;
  readonly kv: { readonly keys: KvType; readonly values: KvType };
  readonly decode: DecodeMode;
  /** Of the hidden states that the stage takes and gives. */
  readonly wire: WireType;
  readonly device: Device;
  readonly threads: number;
  readonly confinement?: StageConfinement;
}

/** From the stage. */
export type StageMessage =
  | StageWelcome
  | { readonly kind: 'loading'; readonly fraction: number }
  | { readonly kind: 'loaded'; readonly facts: StageFacts }
  | { readonly kind: 'load-failed'; readonly code: ErrorCode; readonly facts: ErrorFacts }
  | ({ readonly kind: 'vocabulary'; readonly id: number } & VocabularyTable)
  | { readonly kind: 'tokens'; readonly id: number; readonly tokens: readonly TokenId[] }
  | ({ readonly kind: 'report'; readonly id: number } & StageReport)
  | { readonly kind: 'refused'; readonly id: number; readonly code: ErrorCode; readonly facts: ErrorFacts }
  /** The last word of a stage that cannot go on. */
  | { readonly kind: 'dying'; readonly code: ErrorCode; readonly facts: ErrorFacts };

export interface StageWelcome {
  readonly kind: 'welcome';
  readonly protocol: number;
  readonly pid: number;
  /** Random for each start of a stage process: news of a former process is told apart by it (R2). */
  readonly incarnation: string;
  /** `null` while nothing is loaded. */
  readonly holds: StageHolding | null;
}

/** What a stage tells an agent that has started again (R2). */
export interface StageHolding {
  readonly ring: RingName;
  readonly node: NodeIndex;
  readonly generation: string;
  readonly facts: StageFacts;
}

export interface StageFacts {
  readonly weightBytes: number;
  readonly hiddenWidth: number;
  readonly vocabularySize: number;
  readonly hasTokenizer: boolean;
  /** Whether rows of its KV cache can be another session's as they are: not where a window slides, or state is rolled on. */
  readonly keepsPrefixes: boolean;
  readonly loadMs: number;
}

/**
 * Every token's bytes, so that the head's agent assembles text without asking. Control tokens have none.
 * `pieces` is base64 of all bytes one after another, `lengths` base64 of one u16 (little-endian) a token, `ends` the ids that
 * end a generation.
 */
export interface VocabularyTable {
  readonly pieces: string;
  readonly lengths: string;
  readonly ends: readonly TokenId[];
}

/** Counters since the load. */
export interface StageReport {
  readonly residentBytes: number;
  readonly cpuSeconds: number;
  readonly decodes: number;
  readonly prefilledRows: number;
  readonly decodedRows: number;
  /** Run again after a loss, to fill the KV cache. */
  readonly recomputedRows: number;
  readonly paddingRows: number;
  readonly computeSeconds: number;
  /** Rows of sessions, and of kept prefixes. */
  readonly kvCellsUsed: number;
  readonly kvCellsKept: number;
  /** Threads that compute; 0 while nothing is loaded, and from a stage that does not say. */
  readonly threads: number;
  /** CPUs that it keeps to, as in `0-3,8`; empty for all that the host gives to p4. */
  readonly cpus: string;
}

export interface DataHello {
  readonly protocol: number;
  readonly ring: RingName;
  readonly node: NodeIndex;
  /** Compared with what the stage holds (G3); an orphan of another load is recognised here. */
  readonly generation: string;
}

export type DataAnswer =
  { readonly kind: 'accepted' } | { readonly kind: 'refused'; readonly code: ErrorCode; readonly facts: ErrorFacts };

/**
 * A placement plan: what the operator wrote, checked and with its defaults filled in.
 *
 * `plan-document.ts` makes one from YAML; nothing else does.
 */
import type { HostName, NodeIndex, RingName } from './ids.ts';
import type { CpuRange } from './inventory.ts';
import { limits } from './limits.ts';

export interface Plan {
  readonly ring: RingName;
  /** Path of the GGUF file (or of its first shard), absolute, or relative to the plan file's folder. */
  readonly model: string;
  /** Whose file that is: the operator's, who cuts and sends its slices, or one that every host of the plan has there. */
  readonly modelOn: 'operator' | 'hosts';
  /** Tokens one session may hold, prompt and completion together. */
  readonly contextTokens: number;
  /** Sessions that may be open at once; each has its KV lease on every stage. */
  readonly sessions: number;
  /** Ended sessions whose KV is kept for sessions that begin alike: in cells that open ones leave, until those need them. */
  readonly keptPrefixes: number;
  readonly kv: { readonly keys: KvType; readonly values: KvType };
  readonly decode: DecodeMode;
  readonly wire: WireType;
  /** How long requests wait for a lost stage, agent or link, in seconds (R1); no part of what is computed. */
  readonly deadlineSeconds: number;
  /** In ring order; together they cover the model's layers exactly once. */
  readonly stages: readonly StagePlan[];
}

export interface StagePlan {
  readonly index: NodeIndex;
  readonly host: HostName;
  readonly layers: LayerRange;
  readonly device: Device;
  /**
   * Threads that compute; part of how fast the stage is, not of what it computes (so not of the digest, G2). `auto`: the
   * loader chooses them from what the host has, and tells agents the number.
   */
  readonly threads: number | 'auto';
  /** Absent where the plan confines the stage to nothing; as threads, no part of what it computes. */
  readonly confinement?: StageConfinement;
}

/** What of its host a stage may take, and keeps. */
export interface StageConfinement {
  /** The CPUs that compute; `null`: those that the loader chooses, or all that the host gives to p4. */
  readonly cpus: readonly CpuRange[] | null;
  /** Memory on the host, in bytes: weights, KV cache, compute buffers and the program. `null` for no limit. */
  readonly memoryLimitBytes: number | null;
}

/** Layers `first` to `last`, both included, counted from 0. */
export interface LayerRange {
  readonly first: number;
  readonly last: number;
}

/** `gpu`: the GPU's index on its host, and how many of the slice's layers it holds. */
export type Device =
  { readonly kind: 'cpu' } | { readonly kind: 'gpu'; readonly index: number; readonly layers: number };

/** Of a plan that does not say: as many as there are sequences for, beside those of its sessions. */
export const defaultKeptPrefixes = (sessions: number): number =>
  Math.min(limits.defaultKeptPrefixes, limits.sessions - sessions);

/** Types of the KV cache, by their ggml names. */
export const kvTypes = ['f32', 'f16', 'bf16', 'q8_0', 'q5_1', 'q5_0', 'q4_1', 'q4_0'] as const;
export type KvType = (typeof kvTypes)[number];

/** `fast`: rows run as they come. `exact`: every decode stays in one shape class, so neighbours change nothing (X2). */
export const decodeModes = ['fast', 'exact'] as const;
export type DecodeMode = (typeof decodeModes)[number];

/** The threads that an agent gives a stage: a plan that did not come from a loader may not say, and one waits for nobody. */
export const threadsOf = (threads: StagePlan['threads']): number => (threads === 'auto' ? 1 : threads);

/**
 * What a hidden state is on its way from stage to stage. `f32`: as it was computed (X1). `f16`: rounded to float16, half the
 * bytes; logits then differ from the uncut model's by the bound in ARCHITECTURE.md.
 */
export const wireTypes = ['f32', 'f16'] as const;
export type WireType = (typeof wireTypes)[number];

export const layerCount = (range: LayerRange): number => range.last - range.first + 1;
export const layersText = (range: LayerRange): string => `${range.first}-${range.last}`;

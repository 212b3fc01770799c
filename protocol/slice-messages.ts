/** The messages of p4.proto about slices and models on hosts; `messages.ts` says how they are to be read. */
import type { Uint64Text } from './messages.ts';

export type ListSlicesRequest = Readonly<Record<string, never>>;

export interface SliceList {
  readonly slices: readonly SliceEntry[];
  /** Names and bytes of unfinished files. */
  readonly unfinishedBytes: Uint64Text;
}

export interface SliceEntry {
  readonly sliceId: string;
  readonly bytes: Uint64Text;
  /** Rings of this host that have it loaded, or hold its host for a load to come back. */
  readonly rings: readonly string[];
  /** When the file was last read or written, as far as its file system keeps that, in Unix milliseconds. */
  readonly lastUsedMs: Uint64Text;
}

export interface SliceStateRequest {
  readonly sliceIds: readonly string[];
}

export interface SliceStateReply {
  /** In the order of the request. */
  readonly slices: readonly SliceState[];
}

export interface SliceState {
  readonly sliceId: string;
  readonly isPresent: boolean;
  /** Of the file, or of the part that an earlier upload has left: where the next one goes on. */
  readonly bytes: Uint64Text;
  /** Whether an upload of it is under way. */
  readonly isReceiving: boolean;
}

/** The first one of a stream has `begin`, every other `data`. */
export type SliceChunk =
  | { readonly part: 'begin'; readonly begin: SliceBegin }
  | { readonly part: 'data'; readonly data: Uint8Array }
  | { readonly part?: undefined };

export interface SliceBegin {
  readonly sliceId: string;
  /** Of the whole file. */
  readonly bytes: Uint64Text;
  /** Of the whole file, in hexadecimal. */
  readonly sha256: string;
  /** First byte that is sent: at most what `SliceState` said. */
  readonly offset: Uint64Text;
}

export interface SliceReceived {
  readonly sliceId: string;
  readonly bytes: Uint64Text;
}

export interface RemoveSlicesRequest {
  readonly sliceIds: readonly string[];
}

export interface RemoveSlicesReply {
  readonly removed: readonly string[];
  /** Slices that a ring of this host uses: they stay. */
  readonly kept: readonly string[];
}

export interface LayerSpan {
  readonly first: number;
  readonly last: number;
}

export interface DescribeModelRequest {
  /** Absolute, on the agent's host. */
  readonly path: string;
  /** Slices that are asked about. */
  readonly slices: readonly LayerSpan[];
}

export type ModelNews =
  | { readonly news: 'progress'; readonly progress: WorkProgress }
  | { readonly news: 'model'; readonly model: ModelDescription }
  | { readonly news?: undefined };

export interface WorkProgress {
  readonly doneBytes: Uint64Text;
  readonly totalBytes: Uint64Text;
}

export interface ModelDescription {
  /** What `hashModel` gives. */
  readonly modelHash: string;
  readonly architecture: string;
  readonly layers: number;
  readonly contextTokens: number;
  readonly bytes: Uint64Text;
  /** Layers after which the model may be cut in two. */
  readonly cutsAfter: readonly number[];
  /** In the order of the request. */
  readonly slices: readonly SliceDescription[];
}

export interface SliceDescription {
  /** Why there is no such slice; empty when there is, and only then the rest says something. */
  readonly fault: string;
  readonly sliceId: string;
  readonly bytes: Uint64Text;
  readonly memory: SliceMemoryMessage | null;
}

/** `SliceMemory` of model/memory-estimate.ts. */
export interface SliceMemoryMessage {
  readonly weightBytes: Uint64Text;
  readonly headerBytes: Uint64Text;
  readonly tokens: number;
  readonly layers: number;
  readonly keyElements: number;
  readonly valueElements: number;
  readonly hiddenWidth: number;
  readonly innerWidth: number;
  readonly vocabularySize: number;
  readonly keepsOrder: boolean;
  readonly isHead: boolean;
  readonly isTail: boolean;
  /** 0 from an agent that does not say. */
  readonly tensors: number;
}

export interface CutSliceRequest {
  /** Absolute, on the agent's host. */
  readonly path: string;
  readonly layers: LayerSpan | null;
  /** What the slice has to be. */
  readonly sliceId: string;
}

export type CutNews =
  | { readonly news: 'progress'; readonly progress: WorkProgress }
  | { readonly news: 'cut'; readonly cut: SliceReceived }
  | { readonly news?: undefined };

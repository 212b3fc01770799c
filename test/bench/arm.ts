/** What is measured of each arm: the uncut model, and rings of its stages. */
import type { Spread } from './statistics.ts';

/** One way to run the model, loaded and ready; arms are measured in turn. */
export interface Arm {
  readonly processes: readonly BenchProcess[];
  /** Greedy tokens after a prompt, the end of generation ignored. */
  decode(order: DecodeOrder): Promise<DecodeRun>;
  /** One token after a long prompt. */
  prefill(prompt: readonly number[]): Promise<PrefillRun>;
}

export interface DecodeOrder {
  readonly prompt: readonly number[];
  /** Tokens to draw: each but the first ends one measured interval. */
  readonly tokens: number;
}

export interface DecodeRun {
  readonly tokens: readonly number[];
  /** Milliseconds from each token to the next, as whoever asked sees them. */
  readonly intervalsMs: readonly number[];
  /** Milliseconds that each stage computed for a row, in ring order; the uncut model is one stage. */
  readonly computeMs: readonly number[];
  /** CPU milliseconds for a token, in the order of the arm's processes. */
  readonly cpuMs: readonly number[];
}

export interface PrefillRun {
  readonly token: number;
  /** From the request to its first token, in milliseconds. */
  readonly ms: number;
}

export type ProcessRole = 'model' | 'agent' | 'stage' | 'client';

export interface BenchProcess {
  readonly role: ProcessRole;
  readonly name: string;
  readonly pid: number;
}

/** An edge between two agents, as the sending agent counts it. */
export interface LinkTimes {
  readonly source: number;
  readonly destination: number;
  readonly frames: number;
  /** From the send of a frame to its acknowledgement, when the receiving node has finished it. */
  readonly ackP50Ms: number;
  readonly ackP99Ms: number;
}

/** Round trips of a small message between two processes over plain TCP on loopback, in milliseconds. */
export interface RoundTrips {
  readonly p50Ms: Spread;
  readonly p99Ms: Spread;
}

export const intervalsOf = (timesMs: readonly number[]): readonly number[] =>
  timesMs.slice(1).map((ms, index) => ms - (timesMs[index] ?? 0));

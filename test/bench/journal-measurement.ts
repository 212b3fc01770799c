/** What the benchmark of the journal measures: rings and bare journals that differ in nothing but their journal. */
import { mean } from './statistics.ts';
import type { SystemCalls } from './system-calls.ts';

/** An arm: a ring under an agent of its own, and what that agent's journal is. */
export interface JournalArm {
  readonly name: string;
  /** Finished records that it holds before anything is measured, besides the load's own. */
  readonly records: number;
  readonly isOnDisk: boolean;
}

/** What all others are compared with: an empty journal on the disk. */
export const emptyArm: JournalArm = { name: 'empty', records: 0, isOnDisk: true };
/** The same once more: what its ratio differs from 1 is chance, and two processes that are not quite alike. */
export const controlArm: JournalArm = { name: 'empty, once more', records: 0, isOnDisk: true };
export const memoryArm: JournalArm = { name: 'empty, in memory', records: 0, isOnDisk: false };

/** @param most finished records of the fullest; `isQuick` leaves out what lies between it and the empty one */
export function journalArms(most: number, isQuick: boolean): readonly JournalArm[] {
  const counts = isQuick ? [most] : [most / 100, most / 10, most];
  const holding = counts.map((records) => ({ name: countText(records), records, isOnDisk: true }));
  return [emptyArm, ...(isQuick ? [] : [controlArm]), ...holding, memoryArm];
}

/** 10000 as `10 k`, 1000000 as `1 M`. */
export function countText(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`;
  return count >= 1000 ? `${count / 1000} k` : String(count);
}

/** What a ring drew at a stretch. */
export interface Drawn {
  readonly tokens: readonly number[];
  /** Milliseconds from each token to the next, as whoever asked sees them. */
  readonly intervalsMs: readonly number[];
  /** Of the agent, its opening of the session included. */
  readonly cpuMs: number;
}

/** What a ring drew in a round, in several stretches between those of the others. */
export interface RingRound {
  /** Of each stretch. */
  readonly tokens: readonly (readonly number[])[];
  readonly tokensPerSecond: number;
  /** Of the agent, for a token. */
  readonly cpuMs: number;
}

/** @param stretches at least one, each of at least two tokens */
export function ringRound(stretches: readonly Drawn[]): RingRound {
  const count = stretches.reduce((sum, { tokens }) => sum + tokens.length, 0);
  return {
    tokens: stretches.map(({ tokens }) => tokens),
    tokensPerSecond: 1000 / mean(stretches.flatMap(({ intervalsMs }) => intervalsMs)),
    cpuMs: stretches.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / count,
  };
}

/** Records that a journal holds, as its agent or process counts them. */
export interface Held {
  readonly before: number;
  readonly after: number;
}

/** Rounds of one arm, oldest first; those of all arms belong together by their place. */
export interface MeasuredRing {
  readonly arm: JournalArm;
  readonly held: Held;
  readonly rounds: readonly RingRound[];
}

/** A bare journal that was appended to, without agent and ring. */
export interface MeasuredAppends {
  readonly arm: JournalArm;
  readonly held: Held;
  /** In each round. */
  readonly appendsPerSecond: readonly number[];
  /** Of its process, for an append, in each round. */
  readonly cpuMs: readonly number[];
}

export interface JournalTrace {
  /** Tokens that were drawn meanwhile. */
  readonly tokens: number;
  /** Of the traced agent's journal. */
  readonly arm: JournalArm;
  readonly calls: SystemCalls;
}

export interface JournalMeasurement {
  readonly rings: readonly MeasuredRing[];
  readonly appends: readonly MeasuredAppends[];
  readonly trace: JournalTrace;
}

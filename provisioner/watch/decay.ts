/**
 * How fast a ring decodes now, against an earlier time at equal load: the first hour of its load where the head's agent has
 * seen that, else the beginning of this watch. Pure.
 */
import type { RingName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import {
  addedStretch,
  isSameLevel,
  stretchBetween,
  withStretch,
  type SpeedLevel,
  type SpeedReading,
  type SpeedStretch,
} from '../../protocol/speed-level.ts';
import type { SampleValues } from './sample-values.ts';

export type Decay =
  | { readonly kind: 'unknown'; readonly why: 'nothing-decoded' | 'too-little-decoded' }
  | {
      readonly kind: 'known';
      /** 1: as fast as then; 0.9: a tenth slower. */
      readonly ratio: number;
      readonly against: 'first-hour' | 'this-watch';
      readonly level: SpeedLevel;
    };

interface TimedReading {
  readonly process: number;
  readonly atSeconds: number;
  readonly reading: SpeedReading;
}

export interface SpeedState {
  /** Where the stretch that is not over began. */
  readonly since: TimedReading | null;
  /** The one that is not over, as far as it has come. */
  readonly open: SpeedStretch | null;
  /** The latest that are over, oldest first. */
  readonly stretches: readonly SpeedStretch[];
  /** What was seen first at each level. */
  readonly firsts: readonly SpeedStretch[];
}

export const noSpeed: SpeedState = { since: null, open: null, stretches: [], firsts: [] };

/** Stretches that `now` is the mean of: five minutes. */
const nowStretches = 30;
/** Tokens of a level that the beginning of a watch is made of. */
const firstTokens = 10 * limits.speedLeastTokens;
/** Times between tokens without which `now` says nothing. */
const nowLeastTokens = 20;

export function noteSpeed(state: SpeedState, next: TimedReading): SpeedState {
  const { since } = state;
  if (since === null || since.process !== next.process || next.reading.interTokens < since.reading.interTokens)
    return { ...state, since: next, open: null };
  const open = stretchBetween(since.reading, next.reading);
  if (next.atSeconds - since.atSeconds < limits.speedStretchMs / 1000) return { ...state, open };
  if (open === null) return { ...state, since: next, open };
  return {
    since: next,
    open: null,
    stretches: [...state.stretches, open].slice(-nowStretches),
    firsts: withFirst(state.firsts, open),
  };
}

function withFirst(firsts: readonly SpeedStretch[], stretch: SpeedStretch): readonly SpeedStretch[] {
  const former = firsts.find(({ level }) => isSameLevel(level, stretch.level));
  return former !== undefined && former.tokens >= firstTokens ? firsts : withStretch(firsts, stretch);
}

/** @param firstHour speeds of the load's first hour, by level; empty where they are not known */
export function decayOf({ open, stretches, firsts }: SpeedState, firstHour: readonly SpeedStretch[]): Decay {
  const latest = stretches.at(-1) ?? open;
  if (latest === null) return { kind: 'unknown', why: 'nothing-decoded' };
  const { level } = latest;
  const now = [...stretches, ...(open === null ? [] : [open])]
    .filter((each) => isSameLevel(each.level, level))
    .reduce(addedStretch);
  const atLevel = (all: readonly SpeedStretch[]): SpeedStretch | undefined =>
    all.find((each) => isSameLevel(each.level, level));
  const [hour, first] = [atLevel(firstHour), atLevel(firsts)];
  const base = hour ?? first;
  const isEnough = now.tokens >= nowLeastTokens && (hour !== undefined || (first?.tokens ?? 0) >= nowLeastTokens);
  if (base === undefined || !isEnough) return { kind: 'unknown', why: 'too-little-decoded' };
  const ratio = base.seconds / base.tokens / (now.seconds / now.tokens);
  return { kind: 'known', ratio, against: hour === undefined ? 'this-watch' : 'first-hour', level };
}

/**
 * What the head's agent counted of the ring's speed; `null` where it does not have all of it.
 * @param contextShare used share of the KV cache
 */
export function speedReading(head: SampleValues, ring: RingName, contextShare: number): TimedReading | null {
  const interToken = head.times('p4_ring_inter_token_seconds', { ring });
  const activeSeconds = head.value('p4_ring_active_seconds_total', { ring });
  const requestSeconds = head.value('p4_ring_request_seconds_total', { ring });
  const promptTokens = head.value('p4_ring_prompt_tokens_total', { ring });
  const generatedTokens = head.value('p4_ring_generated_tokens_total', { ring });
  if (interToken === null || activeSeconds === null || requestSeconds === null) return null;
  if (promptTokens === null || generatedTokens === null) return null;
  const { seconds: interTokenSeconds, count: interTokens } = interToken;
  const counts = { interTokenSeconds, interTokens, activeSeconds, requestSeconds, promptTokens, generatedTokens };
  return { process: head.process, atSeconds: head.atSeconds, reading: { ...counts, contextShare } };
}

/** The speeds of the first hour that the head's agent has kept. */
export const firstHourOf = (head: SampleValues, ring: RingName): readonly SpeedStretch[] =>
  head.all('p4_ring_first_hour_token_seconds', { ring }).map(({ labels, value }) => ({
    level: {
      running: labels['running'] ?? '',
      context: labels['context'] ?? '',
      prompt: labels['beside'] ?? '',
    },
    ...{ seconds: value, tokens: 1 },
  }));

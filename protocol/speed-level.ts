/**
 * How fast a ring decodes, and under which load: what alone can be compared with an earlier time.
 *
 * Speed is the mean time between two tokens of one request. It grows when more requests share the ring, with the context
 * that attention has to read, and while prompts are computed in between: the level is the bands of these three.
 */

/** A range of values and its name; `most` of the last is unbounded. */
export interface Band {
  readonly name: string;
  readonly most: number;
}

/** Requests that run at once. */
export const runningBands: readonly Band[] = [
  { name: '1', most: 1.5 },
  { name: '2', most: 2.5 },
  { name: '3-4', most: 4.5 },
  { name: '5-8', most: 8.5 },
  { name: '9-16', most: 16.5 },
  { name: '17+', most: Infinity },
];

/** Used share of the KV cache. */
export const contextBands: readonly Band[] = [
  { name: '0-25%', most: 0.25 },
  { name: '25-50%', most: 0.5 },
  { name: '50-75%', most: 0.75 },
  { name: '75-100%', most: Infinity },
];

/** Rows of prompts that a generated token stands beside. */
export const promptBands: readonly Band[] = [
  { name: '0-1', most: 1 },
  { name: '1-4', most: 4 },
  { name: '4-16', most: 16 },
  { name: '16+', most: Infinity },
];

/** Slower than its first hour by this share: a person would notice. */
export const decayedShare = 0.05;
/** Slower by so much that it matters, whether it still falls or not. */
export const slowShare = 0.15;

/** Names of the bands. */
export interface SpeedLevel {
  readonly running: string;
  readonly context: string;
  readonly prompt: string;
}

/** What a ring's head has counted so far; counters but for the share. */
export interface SpeedReading {
  /** Times between two tokens of a request, and how many. */
  readonly interTokenSeconds: number;
  readonly interTokens: number;
  readonly activeSeconds: number;
  readonly requestSeconds: number;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  /** Used share of the KV cache, 0 to 1, at the moment. */
  readonly contextShare: number;
}

/** A stretch of decoding at one level. */
export interface SpeedStretch {
  readonly level: SpeedLevel;
  /** Times between two tokens of a request, added up, and how many. */
  readonly seconds: number;
  readonly tokens: number;
}

/** What was decoded between two readings; `null` where nothing was, or the counters began anew. */
export function stretchBetween(before: SpeedReading, after: SpeedReading): SpeedStretch | null {
  const seconds = after.interTokenSeconds - before.interTokenSeconds;
  const tokens = after.interTokens - before.interTokens;
  const active = after.activeSeconds - before.activeSeconds;
  const generated = after.generatedTokens - before.generatedTokens;
  if (!(seconds > 0 && tokens > 0 && active > 0 && generated > 0)) return null;
  const level = {
    running: bandOf((after.requestSeconds - before.requestSeconds) / active, runningBands),
    context: bandOf(after.contextShare, contextBands),
    prompt: bandOf((after.promptTokens - before.promptTokens) / generated, promptBands),
  };
  return { level, seconds, tokens };
}

export const isSameLevel = (one: SpeedLevel, other: SpeedLevel): boolean =>
  one.running === other.running && one.context === other.context && one.prompt === other.prompt;

/** Two stretches of one level. */
export const addedStretch = (one: SpeedStretch, other: SpeedStretch): SpeedStretch => ({
  level: one.level,
  seconds: one.seconds + other.seconds,
  tokens: one.tokens + other.tokens,
});

/** One stretch of each level: a further one is added to that of its level. */
export function withStretch(stretches: readonly SpeedStretch[], stretch: SpeedStretch): readonly SpeedStretch[] {
  const former = stretches.find(({ level }) => isSameLevel(level, stretch.level));
  if (former === undefined) return [...stretches, stretch];
  return stretches.map((each) => (each === former ? addedStretch(former, stretch) : each));
}

function bandOf(value: number, bands: readonly Band[]): string {
  return bands.find(({ most }) => value <= most)?.name ?? bands.at(-1)?.name ?? '';
}

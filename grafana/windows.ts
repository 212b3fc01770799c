/**
 * How long the rules look back and wait. They are parameters, so that a proof may let an hour last seconds: the rules of
 * such a proof differ from those in `rules/` in nothing else.
 */

export interface Windows {
  /** Between two evaluations of the rules, in seconds; at least the time between two scrapes. */
  readonly intervalSeconds: number;
  /** What a rate is taken over: at least four scrapes, so that one that fails leaves no gap. */
  readonly rateSeconds: number;
  /** What speed is compared over: its median within this hour stands for it. */
  readonly hourSeconds: number;
  /** What is too little of an hour to know a speed by, in seconds. */
  readonly leastSeconds: number;
  /** What a slope is taken over. */
  readonly slopeSeconds: number;
  /** How long the speed of the first hour is known without Prometheus seeing the ring. */
  readonly keepSeconds: number;
  /** What stands for the usual of a link and a stage. */
  readonly usualSeconds: number;
  /** How long something must last: a matter that a person has to see at once, soon, or when it stays. */
  readonly holdSeconds: {
    readonly none: number;
    readonly short: number;
    readonly medium: number;
    readonly long: number;
  };
}

const minute = 60;
const hour = 60 * minute;

export const realWindows: Windows = {
  intervalSeconds: 30,
  rateSeconds: 2 * minute,
  hourSeconds: hour,
  leastSeconds: 10 * minute,
  slopeSeconds: 4 * hour,
  keepSeconds: 24 * hour,
  usualSeconds: 24 * hour,
  holdSeconds: { none: 0, short: minute, medium: 10 * minute, long: hour },
};

/**
 * The same, `factor` times as fast.
 *
 * @param scrapeSeconds between two scrapes: what rates need does not shrink with the rest
 */
export function scaledWindows(factor: number, scrapeSeconds: number): Windows {
  const { holdSeconds, ...real } = realWindows;
  const scaled = (seconds: number): number => Math.max(scrapeSeconds, Math.round(seconds / factor));
  return {
    intervalSeconds: scrapeSeconds,
    rateSeconds: Math.max(4 * scrapeSeconds, scaled(real.rateSeconds)),
    hourSeconds: Math.max(8 * scrapeSeconds, scaled(real.hourSeconds)),
    leastSeconds: scaled(real.leastSeconds),
    slopeSeconds: Math.max(32 * scrapeSeconds, scaled(real.slopeSeconds)),
    keepSeconds: Math.max(hour, scaled(real.keepSeconds)),
    usualSeconds: Math.max(64 * scrapeSeconds, scaled(real.usualSeconds)),
    holdSeconds: {
      none: 0,
      short: scaled(holdSeconds.short),
      medium: scaled(holdSeconds.medium),
      long: scaled(holdSeconds.long),
    },
  };
}

/** As Prometheus writes it: `90s`, `2m`, `1h`, `1d`. */
export function durationText(seconds: number): string {
  const units = [
    ['d', 24 * hour],
    ['h', hour],
    ['m', minute],
  ] as const;
  if (seconds === 0) return '0s';
  const whole = units.find(([, size]) => seconds % size === 0);
  return whole === undefined ? `${seconds}s` : `${seconds / whole[1]}${whole[0]}`;
}

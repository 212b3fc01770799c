/** Medians, quantiles and ratios of what was measured. */
import { assert, present } from '../../protocol/assert.ts';

/** What a figure came out as over the rounds. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly greatest: number;
  readonly runs: number;
}

/** Of two figures, within a round. */
export interface Ratio {
  readonly name: string;
  readonly spread: Spread;
}

/** What was found in each run, as people read it. */
export const spreadText = ({ median, least, greatest }: Spread, digits: number): string =>
  `${median.toFixed(digits)} (${least.toFixed(digits)} to ${greatest.toFixed(digits)})`;

/** The middle value; of an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const upper = Math.floor(sorted.length / 2);
  const lower = sorted.length % 2 === 0 ? upper - 1 : upper;
  return (present(sorted[lower], 'a middle') + present(sorted[upper], 'a middle')) / 2;
}

/**
 * The nearest-rank quantile: the least value that at least this share of the values does not exceed.
 * @param share above 0 and at most 1
 */
export function quantile(values: readonly number[], share: number): number {
  assert(share > 0 && share <= 1, 'a share is above 0 and at most 1');
  const sorted = ascending(values);
  return present(sorted[Math.ceil(share * sorted.length) - 1], 'a rank is that of a value');
}

export function mean(values: readonly number[]): number {
  assert(values.length > 0, 'there is something to sum up');
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = ascending(values);
  const [least] = sorted;
  return {
    median: median(sorted),
    least: present(least, 'a least value'),
    greatest: present(sorted.at(-1), 'a greatest value'),
    runs: sorted.length,
  };
}

/**
 * The ratio of two figures in each round. What else the machine does changes from round to round, and falls on both
 * figures of one: so their ratio is taken first, and then the median.
 */
export function pairedRatios(numerators: readonly number[], denominators: readonly number[]): readonly number[] {
  assert(numerators.length === denominators.length, 'each round has both figures');
  return numerators.map((numerator, round) => {
    const denominator = denominators[round] ?? 0;
    assert(denominator > 0, 'what is divided by is above 0');
    return numerator / denominator;
  });
}

/** A straight line through points, by least squares. */
export interface LineFit {
  readonly slope: number;
  readonly intercept: number;
  /** The part of the variance that the line explains: 1 where all points lie on it. */
  readonly rSquared: number;
}

/** @param points at least two, not all at one `x` */
export function lineFit(points: readonly (readonly [x: number, y: number])[]): LineFit {
  const meanX = mean(points.map(([x]) => x));
  const meanY = mean(points.map(([, y]) => y));
  const sum = (of: (dx: number, dy: number) => number): number =>
    points.reduce((total, [x, y]) => total + of(x - meanX, y - meanY), 0);
  const varianceX = sum((dx) => dx * dx);
  assert(varianceX > 0, 'a line needs points at two places');
  const slope = sum((dx, dy) => dx * dy) / varianceX;
  const varianceY = sum((_dx, dy) => dy * dy);
  const left = sum((dx, dy) => (dy - slope * dx) ** 2);
  return { slope, intercept: meanY - slope * meanX, rSquared: varianceY === 0 ? 1 : 1 - left / varianceY };
}

function ascending(values: readonly number[]): number[] {
  assert(values.length > 0, 'there is something to sum up');
  return [...values].sort((one, other) => one - other);
}

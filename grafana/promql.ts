/** Expressions of Prometheus, put together from the metrics of the table. */
import type { Band } from '../protocol/speed-level.ts';
import { durationText } from './windows.ts';

/** `[2m]`. */
export const range = (seconds: number): string => `[${durationText(seconds)}]`;

/** What a counter grows by in a second, summed over what is not in `by`. */
export const rateOf = (by: string, counter: string, window: string): string =>
  `sum by (${by}) (rate(${counter}${window}))`;

/** A quantile of a histogram's latest values. */
export const quantileOf = (
  share: number,
  by: string,
  { histogram, window }: { histogram: string; window: string },
): string => `histogram_quantile(${share}, sum by (le, ${by}) (rate(${histogram}_bucket${window})))`;

/** The mean of a histogram's latest values; nothing where there are none. */
export const meanOf = (by: string, histogram: string, window: string): string =>
  `${rateOf(by, `${histogram}_sum`, window)} / (${rateOf(by, `${histogram}_count`, window)} > 0)`;

/** An expression with a label more: the band that `by`, a metric with the same labels `on`, lies in. */
export function banded(
  expression: string,
  { label, by, on, bands }: { label: string; by: string; on: string; bands: readonly Band[] },
): string {
  const parts = bands.map(({ name, most }, index) => {
    const above = bands[index - 1];
    const low = above === undefined ? '' : ` > ${above.most}`;
    const high = most === Infinity ? '' : ` <= ${most}`;
    return `label_replace(${expression} and on (${on}) (${by}${low}${high}), "${label}", "${name}", "", "")`;
  });
  return parts.join('\nor\n');
}

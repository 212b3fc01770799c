/** Figures as people read them, each as wide as its kind can be. Pure. */
import type { Marks } from './styled-line.ts';

/** What is not known. */
export const unknown = '-';

export const orUnknown = (value: number | null, text: (known: number) => string): string =>
  value === null ? unknown : text(value);

/** `0.84 ms`, `12.3 ms`, `4.81 s`. */
export function secondsText(seconds: number): string {
  const isLong = seconds >= 1;
  const value = isLong ? seconds : seconds * 1000;
  const digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${isLong ? 's' : 'ms'}`;
}

/** `104`, `10.4`, `1.04`, `0`. */
export function rateText(perSecond: number): string {
  if (perSecond === 0) return '0';
  return perSecond.toFixed(perSecond >= 99.95 ? 0 : perSecond >= 9.995 ? 1 : 2);
}

export const percentText = (share: number): string => `${Math.round(share * 100)}%`;

/** The latest values that fit, each as high as its share of the greatest; a gap where one is not known. */
export function sparkline(values: readonly (number | null)[], width: number, { levels }: Marks): string {
  const shown = width <= 0 ? [] : values.slice(-width);
  const most = Math.max(0, ...shown.map((value) => value ?? 0));
  return shown
    .map((value) => {
      if (value === null) return ' ';
      const level = most === 0 ? 0 : Math.round((value / most) * (levels.length - 1));
      return levels[level] ?? ' ';
    })
    .join('');
}

/** @param share 0 to 1 */
export function bar(share: number, width: number, { full, empty }: Marks): string {
  const filled = Math.round(Math.max(0, Math.min(1, share)) * width);
  return full.repeat(filled) + empty.repeat(width - filled);
}

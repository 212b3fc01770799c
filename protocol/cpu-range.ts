/** Sets of CPUs as texts: `0-3,8`. */
import type { CpuRange } from './inventory.ts';

/** A set as ranges; the numbers may come in any order, each once. */
export function rangesOfCpus(cpus: readonly number[]): readonly CpuRange[] {
  const ranges: CpuRange[] = [];
  for (const cpu of cpus.toSorted((one, other) => one - other)) {
    const before = ranges.at(-1);
    if (before?.last === cpu - 1) ranges.splice(-1, 1, { first: before.first, last: cpu });
    else ranges.push({ first: cpu, last: cpu });
  }
  return ranges;
}

export const cpusOfRanges = (ranges: readonly CpuRange[]): readonly number[] =>
  ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_none, index) => first + index));

export type CpuRangesReading =
  | { readonly kind: 'ranges'; readonly ranges: readonly CpuRange[] }
  /** `found` and `expected` are a fault's words. */
  | { readonly kind: 'wrong'; readonly found: string; readonly expected: string };

/** Ranges have to rise and not to overlap, so that one set has one text. */
export function cpuRangesOf(text: string): CpuRangesReading {
  const ranges: CpuRange[] = [];
  for (const part of text.split(',')) {
    const [, first, last = first] = /^([0-9]{1,4})(?:-([0-9]{1,4}))?$/.exec(part) ?? [];
    if (first === undefined) return { kind: 'wrong', found: `"${part}"`, expected: 'a CPU or a range, as in 0-3,8' };
    const range = { first: Number(first), last: Number(last) };
    if (range.first > range.last)
      return { kind: 'wrong', found: part, expected: `the lower CPU first: ${range.last}-${range.first}` };
    const before = ranges.at(-1);
    if (before !== undefined && range.first <= before.last)
      return { kind: 'wrong', found: part, expected: `CPUs above ${before.last}: each once and in rising order` };
    ranges.push(range);
  }
  return { kind: 'ranges', ranges };
}

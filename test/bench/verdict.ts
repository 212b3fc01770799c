/** What a figure came to against its target, and the table of them. */
import { tableLines } from '../../provisioner/text-table.ts';
import { spreadOf, spreadText, type Spread } from './statistics.ts';

export interface Target {
  readonly is: 'at least' | 'at most';
  readonly value: number;
}

export interface Verdict {
  readonly figure: string;
  readonly found: Spread;
  readonly unit: '' | 'ms';
  /** `null` where a figure stands beside the others and nothing is demanded of it. */
  readonly target: Target | null;
  /** Whether the median is on the target's side; `null` without one. */
  readonly isMet: boolean | null;
}

export interface Judged extends Pick<Verdict, 'figure'> {
  /** One number where it is not measured anew in each round. */
  readonly found: Spread | number;
  readonly unit?: Verdict['unit'];
}

export const atLeast = (value: number, judged: Judged): Verdict => verdict(judged, { is: 'at least', value });

export const atMost = (value: number, judged: Judged): Verdict => verdict(judged, { is: 'at most', value });

/** A figure without a target. */
export const beside = (judged: Judged): Verdict => verdict(judged, null);

function verdict({ figure, found, unit = '' }: Judged, target: Target | null): Verdict {
  const spread = typeof found === 'number' ? spreadOf([found]) : found;
  const { median } = spread;
  const isMet = target === null ? null : target.is === 'at least' ? median >= target.value : median <= target.value;
  return { figure, found: spread, unit, target, isMet };
}

export const verdictLines = (verdicts: readonly Verdict[]): readonly string[] =>
  tableLines(
    [
      { title: 'figure', align: 'left' },
      { title: 'target', align: 'right' },
      { title: 'median (least to greatest)', align: 'right' },
      { title: 'runs', align: 'right' },
      { title: '', align: 'left' },
    ],
    verdicts.map(({ figure, found, unit, target, isMet }) => [
      unit === '' ? figure : `${figure}, ${unit}`,
      target === null ? '-' : `${target.is} ${String(target.value)}`,
      spreadText(found, 3),
      String(found.runs),
      isMet === null ? '' : isMet ? 'met' : 'MISSED',
    ]),
  );

/** The journal's figures as tables for people. */
import { tableLines } from '../../provisioner/text-table.ts';
import type { JournalFigures, JournalSummary } from './journal-summary.ts';
import { spreadText } from './statistics.ts';

export function journalLines({ decode, appends, ratios, trace }: JournalSummary): readonly string[] {
  const { calls, listings, looks, looksAtOpenFiles, opened, writes, syncs } = trace.calls;
  return [
    ...speedLines('a ring, by its journal', { of: decode, unit: 'token', digits: 1 }),
    '',
    ...speedLines('a bare journal', { of: appends, unit: 'append', digits: 0 }),
    '',
    ...tableLines(
      [
        { title: 'ratio within a round', align: 'left' },
        { title: 'median (least to greatest)', align: 'right' },
      ],
      ratios.map(({ name, spread }) => [name, spreadText(spread, 3)]),
    ),
    '',
    `${trace.tokens} tokens of the ring with ${trace.arm.name} records under strace, all threads of its agent: ` +
      `${calls} calls that list, look, open, write or sync; in the journal's folder ${writes} writes and ${syncs} syncs, ` +
      `${looksAtOpenFiles} looks at files that were open, ${opened.length} files opened, ${looks.length} looks by path; ` +
      `${listings.length} directories listed anywhere.`,
    ...[...listings, ...looks, ...opened].slice(0, shownCalls).map((line) => `  ${line}`),
  ];
}

/** Calls that are shown as they are. */
const shownCalls = 20;

interface Speeds {
  readonly of: readonly JournalFigures[];
  readonly unit: string;
  readonly digits: number;
}

const speedLines = (title: string, { of, unit, digits }: Speeds): readonly string[] =>
  tableLines(
    [
      { title, align: 'left' },
      { title: 'records at the start', align: 'right' },
      { title: 'and at the end', align: 'right' },
      { title: `${unit}s/s, median (least to greatest)`, align: 'right' },
      { title: `CPU ms per ${unit}`, align: 'right' },
    ],
    of.map(({ name, records, perSecond, cpuMs }) => [
      name,
      String(records.before),
      String(records.after),
      spreadText(perSecond, digits),
      spreadText(cpuMs, 2),
    ]),
  );

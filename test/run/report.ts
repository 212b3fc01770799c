/** How a run is told: a line per passing file, everything known about a failing one, figures that tests measured. */
import type { FileOutcome } from './file-run.ts';

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Lines about one file. `source` is its path in the checkout. */
export function fileLines(source: string, outcome: FileOutcome): readonly string[] {
  const { passed, failed, skipped, diagnostics } = outcome;
  const counts = [`${String(passed)} passed`];
  if (failed.length > 0) counts.push(`${String(failed.length)} failed`);
  if (skipped.length > 0) counts.push(`${String(skipped.length)} skipped`);
  const verdict = failed.length > 0 ? 'FAIL' : 'ok  ';
  return [
    `  ${verdict}  ${source}  ${counts.join(', ')}  ${seconds(outcome.durationMs)}`,
    ...diagnostics.map((line) => `          ${line}`),
    ...skipped.map(({ name, why }) => `        skipped: ${name}: ${why}`),
    ...failed.flatMap(({ name, why }) => [`        failed: ${name}`, ...indented(readableStack(why))]),
    ...(failed.length > 0 && outcome.output !== '' ? ['        what it wrote:', ...indented(outcome.output)] : []),
  ];
}

/** The line that machines read: alone, and the last one. */
export function closingLine({ passed, failed, skipped }: Totals): string {
  const counts = `${String(passed)} passed, ${String(failed)} failed`;
  return skipped === 0 ? counts : `${counts}, ${String(skipped)} skipped`;
}

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** Leaves out node's own frames: the fault is never there. */
function readableStack(text: string): string {
  return text
    .split('\n')
    .filter((line) => !/^\s+at .*\(?node:(internal|async_hooks)/.test(line))
    .join('\n');
}

function indented(text: string): readonly string[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `          ${line}`);
}

/** Runs tiers one after another and adds up what became of them. */
import { randomBytes } from 'node:crypto';
import { endProcess, findProcesses, markName } from './leftovers.ts';
import type { Totals } from './report.ts';
import { testSources } from './test-sources.ts';
import { runTier } from './tier-run.ts';
import { filesOf, tierNamed, type TierName } from './tiers.ts';

export interface TestRun {
  /** The checkout. */
  readonly root: string;
  readonly tiers: readonly TierName[];
  /** When there are any, only sources whose path contains one of them run. */
  readonly filters: readonly string[];
  /** Whether files may run for longer than their tier allows. */
  readonly isLong?: boolean;
  readonly write: (line: string) => void;
}

export async function runTests({ root, tiers, filters, isLong = false, write }: TestRun): Promise<Totals> {
  const mark = randomBytes(8).toString('hex');
  process.env[markName] = mark;
  const sources = testSources(root).filter(
    (path) => filters.length === 0 || filters.some((part) => path.includes(part)),
  );
  const totals = { passed: 0, failed: 0, skipped: 0 };
  for (const name of tiers) {
    const files = filesOf(name, sources);
    if (files.length === 0 && filters.length > 0) continue;
    const outcome = await runTier({ tier: tierNamed(name), root, files, mark, isLong, write, ...whereabouts() });
    totals.passed += outcome.passed;
    totals.failed += outcome.failed;
    totals.skipped += outcome.skipped;
  }
  if (totals.passed + totals.failed + totals.skipped === 0) {
    write(`FAIL  no test matches ${filters.join(', ')}`);
    totals.failed = 1;
  }
  return totals;
}

/** Ends every process that the run in this process has started: the run was interrupted. */
export function endMarked(root: string): void {
  const mark = process.env[markName];
  if (mark === undefined) return;
  const started = findProcesses({ mark, root, before: new Set() });
  for (const left of started.filter(({ isMarked }) => isMarked)) endProcess(left);
}

function whereabouts(): { readonly isCi: boolean; readonly isRoot: boolean } {
  const ci = process.env['CI'] ?? '';
  return { isCi: ci !== '' && ci !== 'false', isRoot: process.getuid?.() === 0 };
}

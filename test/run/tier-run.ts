/**
 * Runs one tier: its files, as many at once as it allows; then looks at what they left behind. A process or a file left
 * behind, a tier without tests that must have some, and a Debian package that cannot be had are failures like any other.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { debianPackages, neededBy, preparePackages } from './debian-packages.ts';
import { runFile } from './file-run.ts';
import { awaitNoProcesses, endProcess, leftFiles, runningMains } from './leftovers.ts';
import { fileLines, seconds, type Totals } from './report.ts';
import { builtPath } from './test-sources.ts';
import type { Tier } from './tiers.ts';

/** A file of a long proof that runs longer has got stuck. */
const longFileMs = 4 * 3_600_000;

/** What ends by itself after a tier has this long to do so. */
const endingMs = 5_000;

export interface TierRun {
  readonly tier: Tier;
  readonly root: string;
  /** Sources, relative to the checkout. */
  readonly files: readonly string[];
  /** Value of the environment variable that marks this run's processes; see leftovers.ts. */
  readonly mark: string;
  /** Whether nobody else works in this checkout, and every test must run. */
  readonly isCi: boolean;
  readonly isRoot: boolean;
  readonly isLong: boolean;
  readonly write: (line: string) => void;
}

export async function runTier(options: TierRun): Promise<Totals> {
  const { tier, files, write } = options;
  write(`${tier.name}: ${tier.proves}`);
  if (files.length === 0) return withoutTests(options);
  const lacking = prepare(options);
  if (lacking.length > 0) {
    lacking.forEach(write);
    return { passed: 0, failed: lacking.length, skipped: 0 };
  }
  const startedAtMs = performance.now();
  const totals = await watched(options, () => runFiles(options));
  write(
    `${tier.name}: ${seconds(performance.now() - startedAtMs)}, ${String(totals.passed)} passed, ${String(totals.failed)} failed`,
  );
  return totals;
}

function withoutTests({ tier, write }: TierRun): Totals {
  if (!tier.mustHaveTests) {
    write('  there are no such tests yet');
    return { passed: 0, failed: 0, skipped: 0 };
  }
  write('  FAIL  there are no such tests, and there must be');
  return { passed: 0, failed: 1, skipped: 0 };
}

/** Installs what the tier needs; lines about what cannot be had. */
function prepare({ tier, isRoot, write }: TierRun): readonly string[] {
  const needed = neededBy(tier.name, debianPackages);
  const preparation = preparePackages(needed, isRoot);
  if (preparation.kind === 'missing') {
    return preparation.packages.map(
      ({ name, reason }) => `  FAIL  Debian package ${name} is missing (${reason}): ${preparation.why}`,
    );
  }
  for (const name of preparation.installed) write(`  installed Debian package ${name}`);
  return [];
}

async function runFiles({ tier, root, files, isCi, isLong, write }: TierRun): Promise<Totals> {
  const totals = { passed: 0, failed: 0, skipped: 0 };
  const queue = [...files];
  const work = async (): Promise<void> => {
    for (let source = queue.shift(); source !== undefined; source = queue.shift()) {
      const outcome = await runFile({
        path: builtPath(root, source),
        timeoutMs: isLong ? longFileMs : tier.fileTimeoutMs,
      });
      fileLines(source, outcome).forEach(write);
      totals.passed += outcome.passed;
      totals.failed += outcome.failed.length;
      totals.skipped += outcome.skipped.length;
      // In CI nobody reads that something was skipped: it has to run there.
      if (isCi) totals.failed += outcome.skipped.length;
    }
  };
  await Promise.all(Array.from({ length: Math.min(tier.concurrency, files.length) }, work));
  return totals;
}

/** Does the work with a temporary folder and marked processes of its own, and counts what is left of them as failures. */
async function watched(options: TierRun, work: () => Promise<Totals>): Promise<Totals> {
  const { root, mark, write } = options;
  const before = runningMains(root);
  const outerFolder = tmpdir();
  const folder = mkdtempSync(join(outerFolder, 'p4-'));
  // Tests run programs as other users, who are told where their files are.
  chmodSync(folder, 0o711);
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  // An interrupted run ends here too.
  process.once('exit', remove);
  process.env['TMPDIR'] = folder;
  try {
    const totals = await work();
    const processes = await awaitNoProcesses({ mark, root, before }, endingMs);
    const failures = processes.filter(({ isMarked }) => isMarked || options.isCi);
    for (const left of processes) {
      const isFailure = failures.includes(left);
      write(
        `  ${isFailure ? 'FAIL  left running' : 'not of this run, left alone'}: ${String(left.pid)} ${left.command}`,
      );
      if (isFailure) endProcess(left);
    }
    const files = leftFiles(folder);
    for (const name of files) write(`  FAIL  left in the temporary folder: ${name}`);
    return { ...totals, failed: totals.failed + failures.length + files.length };
  } finally {
    process.env['TMPDIR'] = outerFolder;
    process.off('exit', remove);
    remove();
  }
}

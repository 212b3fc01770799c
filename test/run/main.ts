/**
 * The test runner: `npm test` runs everything, `npm test -- unit ring` those tiers, `npm test -- unit sampling` the files
 * of a tier whose path contains the word. Fails when any test does; closes with `N passed, N failed`. `--long` is for
 * proofs that take more time than a tier gives a file.
 */
import { dirname } from 'node:path';
import { closingLine } from './report.ts';
import { endMarked, runTests } from './test-run.ts';
import { isTierName, tierOrder } from './tiers.ts';

/** This file is built to `dist/test/run/`. */
const root = dirname(dirname(dirname(import.meta.dirname)));
const words = process.argv.slice(2).filter((word) => word !== 'all' && word !== '--long');
const named = words.filter(isTierName);

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    endMarked(root);
    process.exit(130);
  });
}

const totals = await runTests({
  root,
  tiers: named.length === 0 ? tierOrder : tierOrder.filter((name) => named.includes(name)),
  filters: words.filter((word) => !isTierName(word)),
  isLong: process.argv.includes('--long'),
  write: (line) => {
    process.stdout.write(`${line}\n`);
  },
});
process.stdout.write(`\n${closingLine(totals)}\n`);
process.exitCode = totals.failed === 0 ? 0 : 1;

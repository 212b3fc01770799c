/**
 * The test runner: `npm test` runs everything, `npm test -- unit ring` those tiers, `npm test -- unit sampling` the files
 * of a tier whose path contains the word. Fails when any test does; closes with `N passed, N failed`.
 */
import { dirname } from 'node:path';
import { closingLine, sumOf } from './report.ts';
import { startSideRun } from './side-run.ts';
import { endMarked, runTests } from './test-run.ts';
import { isTierName, sideTier, tierOrder } from './tiers.ts';

/** This file is built to `dist/test/run/`. */
const root = dirname(dirname(dirname(import.meta.dirname)));
const words = process.argv.slice(2).filter((word) => word !== 'all');
const named = words.filter(isTierName);

const tiers = named.length === 0 ? tierOrder : tierOrder.filter((name) => named.includes(name));
const filters = words.filter((word) => !isTierName(word));
const write = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const hasSide = tiers.length > 1 && tiers.includes(sideTier) && filters.length === 0;
const side = hasSide ? startSideRun(import.meta.filename, sideTier) : null;

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    side?.end();
    endMarked(root);
    process.exit(130);
  });
}

const totals = await runTests({
  root,
  tiers: side === null ? tiers : tiers.filter((name) => name !== sideTier),
  filters,
  write,
});
const beside = await side?.ended;
beside?.lines.forEach(write);
const all = beside === undefined ? totals : sumOf(totals, beside.totals);
write(`\n${closingLine(all)}`);
process.exitCode = all.failed === 0 ? 0 : 1;

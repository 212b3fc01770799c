/**
 * `npm run check`: everything a commit needs after the build (which holds the types), stopping at the first fault.
 * Rings are `npm test`'s. `npm run check -- style` leaves out the tests, for where `npm test` runs as well.
 */
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { seconds } from './report.ts';
import { runTests } from './test-run.ts';

const root = dirname(dirname(dirname(import.meta.dirname)));

interface Step {
  readonly name: string;
  /** Whether it went well. What it found it has written. */
  readonly passes: () => boolean | Promise<boolean>;
}

const steps: readonly Step[] = [
  { name: 'format', passes: () => tool('prettier/bin/prettier.cjs', ['--check', '--log-level', 'warn', '.']) },
  { name: 'lint', passes: () => tool('eslint/bin/eslint.js', ['--max-warnings', '0', ...lintCache(), '.']) },
  { name: 'tests', passes: tests },
];

const startedAtMs = performance.now();
const wanted = process.argv[2] === 'style' ? steps.filter(({ name }) => name !== 'tests') : steps;
for (const { name, passes } of wanted) {
  const stepStartedAtMs = performance.now();
  const isGood = await passes();
  write(`${name}: ${isGood ? 'good' : 'FAULTY'}, ${seconds(performance.now() - stepStartedAtMs)}`);
  if (!isGood) process.exit(1);
}
write(`check: all good, ${seconds(performance.now() - startedAtMs)} after the build`);

function tool(path: string, words: readonly string[]): boolean {
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules', path), ...words], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return status === 0;
}

/** A type changed in one file can make another one faulty, which a cache does not see: CI does without. */
function lintCache(): readonly string[] {
  if (process.env['CI'] === 'true') return [];
  return [
    '--cache',
    '--cache-strategy',
    'content',
    '--cache-location',
    join('node_modules', '.cache', 'eslint', 'lint'),
  ];
}

async function tests(): Promise<boolean> {
  const totals = await runTests({ root, tiers: ['structure', 'unit', 'simulation'], filters: [], write });
  return totals.failed === 0;
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}

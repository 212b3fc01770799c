/**
 * `npm run check`: everything a commit needs after the build (which holds the types), without the tests when its style is
 * faulty. Format and lint run at once: each has one thread. Rings are `npm test`'s. `npm run check -- style` leaves out the
 * tests, for where `npm test` runs as well.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { seconds } from './report.ts';
import { runTests } from './test-run.ts';

const root = dirname(dirname(dirname(import.meta.dirname)));

interface Step {
  readonly name: string;
  /** Whether it went well. What it found it has written. */
  readonly passes: () => Promise<boolean>;
}

const style: readonly Step[] = [
  { name: 'format', passes: () => tool('prettier/bin/prettier.cjs', ['--check', '--log-level', 'warn', '.']) },
  { name: 'lint', passes: () => tool('eslint/bin/eslint.js', ['--max-warnings', '0', ...lintCache(), '.']) },
];
/** One after another; the steps of each at once. */
const stages = process.argv[2] === 'style' ? [style] : [style, [{ name: 'tests', passes: tests }]];

const startedAtMs = performance.now();
for (const steps of stages) {
  const outcomes = await Promise.all(steps.map(isGood));
  if (outcomes.includes(false)) process.exit(1);
}
write(`check: all good, ${seconds(performance.now() - startedAtMs)} after the build`);

async function isGood({ name, passes }: Step): Promise<boolean> {
  const stepStartedAtMs = performance.now();
  const outcome = await passes();
  write(`${name}: ${outcome ? 'good' : 'FAULTY'}, ${seconds(performance.now() - stepStartedAtMs)}`);
  return outcome;
}

async function tool(path: string, words: readonly string[]): Promise<boolean> {
  const child = spawn(process.execPath, [join(root, 'node_modules', path), ...words], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended: readonly unknown[] = await once(child, 'close');
  return ended[0] === 0;
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

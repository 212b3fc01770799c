/**
 * `npm run simulate -- --seeds 20000`: seeded worlds, one after another, until one breaks a rule. A failing seed is printed
 * with the command that runs it again, traced. `--all` goes on after a failure.
 *
 * `npm run simulate -- --mutations`: takes away one guard after another, and says how many seeds miss it. `--only kept`: those
 * with this word in their names.
 */
import { parseArgs } from 'node:util';
import { reportMutations } from './mutation-report.ts';
import { replayCommand, runSeeds } from './seed-runs.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    from: { type: 'string', default: '0' },
    trace: { type: 'boolean', default: false },
    all: { type: 'boolean', default: false },
    mutations: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});
const write = (line: string): void => void process.stdout.write(`${line}\n`);
const from = Number(values.from);

process.exitCode = values.mutations
  ? reportMutations({ from, count: Number(values.seeds ?? 1500), only: values.only }, write)
  : simulate(Number(values.seeds ?? 1000));

function simulate(count: number): number {
  const startedAtMs = performance.now();
  const failures = runSeeds({
    ...{ from, count },
    ...(values.trace ? { trace: write } : {}),
    failed: ({ seed, found }) => {
      write(`seed ${seed}: ${found}`);
      write(`  ${replayCommand(seed)}`);
      return values.all ? 'go-on' : 'stop';
    },
  });
  write(`${count} seeds in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s, ${failures.length} failed`);
  return failures.length === 0 ? 0 : 1;
}

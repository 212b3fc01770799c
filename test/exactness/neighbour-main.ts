/**
 * `npm run prove:neighbours`: 100 runs with random neighbours, of the stories model and of the 200 M model, in `decode: exact`
 * and, to show that they could differ, some in `decode: fast`. `npm run prove:neighbours -- stories` does the models whose
 * names contain a word, `-- --runs 20` fewer runs. The stories model takes about two minutes, the large one about fifteen.
 */
import { wholeNumber } from '../../provisioner/number-option.ts';
import { neighbourLine, proveNeighbours } from './neighbour-proof.ts';
import { makeBenchModel, stories, type Subject } from './subjects.ts';

const seed = 20;
const tokens = 48;
const args = process.argv.slice(2);
const at = args.indexOf('--runs');
const runs = at < 0 ? 100 : wholeNumber('--runs', args[at + 1] ?? '', [1, 10_000]);
const words = at < 0 ? args : args.filter((_, index) => index !== at && index !== at + 1);
const isChosen = (name: string): boolean => words.length === 0 || words.some((word) => name.includes(word));
let departures = 0;
let proofs = 0;

async function prove(subject: Subject): Promise<void> {
  const exact = await proveNeighbours(subject, { mode: 'exact', runs, tokens, seed });
  process.stdout.write(`${neighbourLine(exact)}\n`);
  const fast = await proveNeighbours(subject, { mode: 'fast', runs: Math.ceil(runs / 4), tokens, seed });
  process.stdout.write(`${neighbourLine(fast)}\n`);
  departures += exact.departures.length;
  proofs += 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

if (isChosen(stories.name)) await prove(stories);
if (isChosen('bench')) {
  const bench = await makeBenchModel();
  try {
    await prove(bench);
  } finally {
    await bench.remove();
  }
}
if (proofs === 0) process.stdout.write(`No model's name contains ${words.join(' or ')}.\n`);
else
  process.stdout.write(
    departures === 0
      ? 'In decode: exact no text depends on its neighbours.\n'
      : `${String(departures)} texts differ.\n`,
  );
process.exitCode = departures === 0 && proofs > 0 ? 0 : 1;

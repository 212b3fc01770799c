/**
 * `npm run prove:exactness`: the proof of exactness in its long form: every slice and every ring of two, three and four stages
 * of the stories model, of each architecture's, and of the 200 M model. `npm run prove:exactness -- gemma3 stories` does the
 * models whose names contain a word, `-- bound` what neighbours change in `decode: fast`, for each kind of weights. A small model
 * takes about a minute, the large one about an hour. What else the proof has (the second oracle, planted bits, whole rings of
 * processes) is quick and stands in the tests beside this.
 *
 * `npm run prove:exactness -- --wire f16` measures what `wire: f16` costs (wire-loss.ts) of the same models, in some minutes; a
 * word that is the path of a GGUF file adds that model.
 */
import { basename } from 'node:path';
import { parseArgs } from 'node:util';

import { benchModelShape } from '../../model/random-model.ts';
import { fastDifferences, fastDifferencesLine, isWithinBound, quantisations } from './fast-bound.ts';
import { prove, reportLine, type ProofScope } from './proof.ts';
import { longBenchScope, longScope } from './scopes.ts';
import { makeBenchModel, smallSubjects, stories, type Subject } from './subjects.ts';
import { measureWireLoss, wireLossLine } from './wire-loss.ts';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { wire: { type: 'string' } } });
const paths = positionals.filter((word) => word.endsWith('.gguf'));
const words = positionals.filter((word) => !word.endsWith('.gguf'));
const isChosen = (name: string): boolean => positionals.length === 0 || words.some((word) => name.includes(word));

// Between two slices; what lies in the temporary folder is removed on the way out.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** @returns how many models were chosen */
async function forEachModel(
  benches: readonly Parameters<typeof makeBenchModel>[0][],
  work: (subject: Subject, isBench: boolean) => Promise<void>,
): Promise<number> {
  const small = [stories, ...(await smallSubjects())].filter(({ name }) => isChosen(name));
  for (const subject of small) await work(subject, false);
  if (!isChosen('bench')) return small.length;
  for (const weightType of benches) {
    const bench = await makeBenchModel(weightType);
    try {
      await work(bench, true);
    } finally {
      await bench.remove();
    }
  }
  return small.length + 1;
}

async function proveAll(): Promise<number> {
  let faults = 0;
  const proveOne = async (subject: Subject, scope: ProofScope): Promise<void> => {
    const report = await prove(subject, scope);
    write(reportLine(report));
    const { observedFound } = report;
    if (!observedFound.isExact) write(`  observing changes the model: ${observedFound.text}`);
    for (const fault of report.faults) write(`  ${fault}`);
    faults += report.faults.length + (observedFound.isExact ? 0 : 1);
  };
  const count = await forEachModel(['Q8_0'], (subject, isBench) =>
    proveOne(subject, isBench ? longBenchScope : longScope),
  );
  const asksBound = isChosen('bound');
  if (asksBound) faults += await proveBound();
  if (count === 0 && !asksBound) {
    write(`No model's name contains ${positionals.join(' or ')}.`);
    faults += 1;
  }
  write(faults === 0 ? 'What was asked is proven.' : `${String(faults)} faults.`);
  return faults;
}

/** @returns how many kinds of weights go beyond the bound of `decode: fast` */
async function proveBound(): Promise<number> {
  let faults = 0;
  for (const weights of quantisations) {
    const found = await fastDifferences(weights, { layers: benchModelShape.layers, steps: 160 });
    write(fastDifferencesLine(found));
    faults += isWithinBound(found) ? 0 : 1;
  }
  return faults;
}

async function measureLosses(): Promise<void> {
  const measure = async (subject: Subject): Promise<void> => {
    write(wireLossLine(await measureWireLoss(subject)));
  };
  await forEachModel(['Q8_0', 'F16'], measure);
  for (const path of paths) await measure({ name: basename(path, '.gguf'), path });
}

if (values.wire === 'f16') await measureLosses();
else process.exitCode = (await proveAll()) === 0 ? 0 : 1;

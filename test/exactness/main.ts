/**
 * `npm run prove:exactness`: the proof of exactness in its long form: every slice and every ring of two, three and four stages
 * of the stories model, of each architecture's, and of the 200 M model. `npm run prove:exactness -- gemma3 stories` does the
 * models whose names contain a word. A small model takes about a minute, the large one about an hour. What else the proof
 * has (the second oracle, planted bits, whole rings of processes) is quick and stands in the tests beside this.
 */
import { prove, reportLine, type ProofScope } from './proof.ts';
import { longBenchScope, longScope } from './scopes.ts';
import { makeBenchModel, smallSubjects, stories, type Subject } from './subjects.ts';

const words = process.argv.slice(2);
const isChosen = (name: string): boolean => words.length === 0 || words.some((word) => name.includes(word));
let faults = 0;

// Between two slices; what lies in the temporary folder is removed on the way out.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function proveOne(subject: Subject, scope: ProofScope): Promise<void> {
  const report = await prove(subject, scope);
  write(reportLine(report));
  const { observedFound } = report;
  if (!observedFound.isExact) write(`  observing changes the model: ${observedFound.text}`);
  for (const fault of report.faults) write(`  ${fault}`);
  faults += report.faults.length + (observedFound.isExact ? 0 : 1);
}

const small = [stories, ...(await smallSubjects())].filter(({ name }) => isChosen(name));
for (const subject of small) await proveOne(subject, longScope);
const benchName = 'bench';
if (isChosen(benchName)) {
  const bench = await makeBenchModel();
  try {
    await proveOne(bench, longBenchScope);
  } finally {
    await bench.remove();
  }
} else if (small.length === 0) {
  write(`No model's name contains ${words.join(' or ')}.`);
  faults += 1;
}
write(faults === 0 ? 'Every slice and every ring is exact.' : `${String(faults)} faults.`);
process.exitCode = faults === 0 ? 0 : 1;

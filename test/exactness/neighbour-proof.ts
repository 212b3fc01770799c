/**
 * X2: in `decode: exact` a session's text does not depend on who runs beside it, nor on how its prompt was chunked.
 *
 * Seeded questions are answered by a ring of two stages under two agents while nobody else asks; then again and again, each
 * run beside neighbours of another seed: how many, when they come, how long their prompts and texts are, and which of them
 * are cancelled. A neighbour's rows share decodes with those of the question, and take from the room of its chunks. The same
 * runs in `decode: fast` tell whether texts could have differed at all.
 */
import { openModel } from '../../model/model-file.ts';
import { randomBits } from '../../model/random-weights.ts';
import { present } from '../../protocol/assert.ts';
import type { DecodeMode } from '../../protocol/plan.ts';
import { LocalRings, type LoadedRing, type Question } from '../fixture/local-rings.ts';
import { besideNeighbours, type NeighbourTally } from './neighbours.ts';
import { randomTokens } from './script.ts';
import type { Subject } from './subjects.ts';

export interface NeighbourScope {
  readonly mode: DecodeMode;
  readonly runs: number;
  /** Tokens of each text. */
  readonly tokens: number;
  /** Of all runs: run `n` is the same whatever the others are, but for time. */
  readonly seed: number;
  readonly onRun?: (run: number) => void;
}

export interface NeighbourReport {
  readonly subject: string;
  readonly mode: DecodeMode;
  readonly runs: number;
  /** Runs whose text differs from that of its question alone. */
  readonly departures: readonly Departure[];
  readonly neighbours: Readonly<NeighbourTally>;
  /** Rows that sessions asked for, by decode of the head's stage, over all runs. */
  readonly rowsPerDecode: number;
}

export interface Departure {
  readonly run: number;
  /** Index of the first token that differs. */
  readonly step: number;
}

/** Beside the question's session there are as many neighbours at most. */
const mostNeighbours = 3;
/** Each neighbour may have a session that was cancelled and is not closed yet. */
const sessions = 1 + 2 * mostNeighbours;
const contextTokens = 256;
/** One chunk, a chunk and a row, and two and three chunks, where nobody is beside. */
const promptLengths = [5, 64, 110, 150];

export async function proveNeighbours(subject: Subject, scope: NeighbourScope): Promise<NeighbourReport> {
  const { layers } = await openModel(subject.path);
  const rings = await LocalRings.start(2);
  try {
    const half = layers / 2;
    const ring = await rings.load({
      ring: 'neighbours',
      model: subject.path,
      cut: [
        { first: 0, last: half - 1 },
        { first: half, last: layers - 1 },
      ],
      ...{ agents: 2, contextTokens, sessions, decode: scope.mode },
    });
    return await runAll(ring, subject, scope);
  } finally {
    await rings.stop();
  }
}

export function neighbourLine({ subject, mode, runs, departures, neighbours, rowsPerDecode }: NeighbourReport): string {
  const same = `${String(runs - departures.length)} of ${String(runs)} texts are the same`;
  const beside = `${String(neighbours.answered)} requests answered and ${String(neighbours.cancelled)} cancelled`;
  const where = departures.slice(0, 3).map(({ run, step }) => `run ${String(run)} from token ${String(step)} on`);
  return [
    `${subject}, decode: ${mode}: ${same}; beside them ${beside}, ${rowsPerDecode.toFixed(2)} rows per decode`,
    ...where,
  ].join('; ');
}

async function runAll(ring: LoadedRing, { name }: Subject, scope: NeighbourScope): Promise<NeighbourReport> {
  const { mode, runs, tokens, seed, onRun } = scope;
  const questions = promptLengths.map((length, index): Question => ({
    prompt: randomTokens(seed + index, length, 1000),
    sampling: { temperature: 0.8, seed: seed + index },
    maxTokens: tokens,
  }));
  const alone: (readonly number[])[] = [];
  for (const question of questions) alone.push((await ring.ask(question)).tokens);
  const tally = { answered: 0, cancelled: 0 };
  const departures: Departure[] = [];
  const before = await headWork(ring);
  for (let run = 0; run < runs; run += 1) {
    onRun?.(run);
    const which = run % questions.length;
    const count = 1 + (randomBits(seed, run)() % mostNeighbours);
    const question = present(questions[which], 'a remainder is an index');
    const order = { count, seed: seed * 1000 + run, tally };
    const answer = await besideNeighbours(ring, order, () => ring.ask(question));
    const step = firstDifference(present(alone[which], 'each was asked alone'), answer.tokens);
    if (step !== null) departures.push({ run, step });
  }
  const after = await headWork(ring);
  const rowsPerDecode = (after.rows - before.rows) / (after.decodes - before.decodes);
  return { ...{ subject: name, mode, runs, departures, rowsPerDecode }, neighbours: tally };
}

/** @returns the index of the first token that differs; `null` for equal texts */
export function firstDifference(one: readonly number[], other: readonly number[]): number | null {
  const most = Math.max(one.length, other.length);
  for (let step = 0; step < most; step += 1) if (one[step] !== other[step]) return step;
  return null;
}

async function headWork(ring: LoadedRing): Promise<{ readonly rows: number; readonly decodes: number }> {
  const nodes = (await ring.status()).flatMap(({ rings }) => rings.flatMap((each) => each.nodes));
  const head = present(
    nodes.find(({ node }) => node === 0),
    'a ring has a head',
  );
  return { rows: Number(head.prefilledRows) + Number(head.decodedRows), decodes: Number(head.decodes) };
}

/**
 * `npm run bench -- --journal`: what the journal costs a ring, however much it holds.
 *
 * Growth: rings that differ only in how many finished records their agent's journal holds, and bare journals that are
 * appended to. Durability: the same ring with its agent's folder on a disk and on a file system in memory, where a sync
 * costs nothing; every line of code that runs is the same. And a trace of an agent's system calls.
 *
 * Rings draw in turn, a few tokens at a stretch and each time in another order, and all agents are started anew several
 * times: no two processes lie alike in memory. A second ring with an empty journal shows how much is chance.
 */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { CommandContext } from '../../provisioner/command.ts';
import { benchModelShape, writeRandomModel } from '../../model/random-model.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { measureAppends } from './journal-appends.ts';
import {
  journalArms,
  ringRound,
  type Drawn,
  type Held,
  type JournalMeasurement,
  type JournalTrace,
  type RingRound,
} from './journal-measurement.ts';
import { requireFileSystems, type JournalBenchOptions } from './journal-options.ts';
import { journalLines } from './journal-report.ts';
import { prepareRings, type JournalRing } from './journal-rings.ts';
import { summarizeJournal } from './journal-summary.ts';
import { machineLine, machineNow } from './machine.ts';
import { turnsOf } from './rounds.ts';
import { requireStrace, traceWhile } from './strace.ts';
import { readTrace } from './system-calls.ts';
import { verdictLines } from './verdict.ts';

/** Tokens that are drawn under the trace. */
const tracedTokens = 100;
/** Rounds after a start that are not counted: weights come from the disk, and code is not compiled yet. */
const warmUpRounds = 3;
/** Tokens that a ring draws before it is the next one's turn: whatever else the machine does lasts longer, and falls on all. */
const stretchTokens = 16;
/** Tokens beyond the prompt and what is drawn. */
const spareTokens = 64;

/** @throws INVALID_ARGUMENT, TRACE_UNAVAILABLE; what a ring or a journal fails with; CANCELLED */
export async function benchJournal(options: JournalBenchOptions, context: CommandContext): Promise<number> {
  const { terminal, signal } = context;
  signal.throwIfAborted();
  await requireFileSystems(options);
  await requireStrace();
  const loadAtStart = loadavg()[0] ?? 0;
  const home = await mkdtemp(join(tmpdir(), 'p4-bench-'));
  const memory = await mkdtemp(join(options.memoryFolder, 'p4-bench-'));
  try {
    const model = join(home, 'bench.gguf');
    terminal.note('Making the model ...');
    await writeRandomModel(model, { ...benchModelShape, layers: options.layers });
    const found = await measure({ options, home, memory, model }, context);
    terminal.endProgress();
    const summary = summarizeJournal(found);
    const machine = machineNow(loadAtStart);
    const { layers, tokens, rounds, starts, appends } = options;
    const order = { starts, rounds, tokens, layers, appendsEachRound: appends };
    terminal.event({ event: 'bench-journal', ...order, machine, ...summary });
    terminal.line(
      `A llama model of ${layers} layers in Q8_0, 2 stages of 1 thread, decode: fast, greedy; ${starts} starts, each ` +
        `with ${rounds} rounds of ${tokens} tokens. Records are those of finished requests of the ring itself.`,
    );
    terminal.line(machineLine(machine));
    for (const lines of [journalLines(summary), verdictLines(summary.verdicts)]) {
      terminal.line(`\n${lines.join('\n')}`);
    }
  } finally {
    await rm(home, { recursive: true, force: true });
    await rm(memory, { recursive: true, force: true });
  }
  return 0;
}

interface Place {
  readonly options: JournalBenchOptions;
  readonly home: string;
  readonly memory: string;
  readonly model: string;
}

/** Leaves no process behind. */
async function measure(place: Place, context: CommandContext): Promise<JournalMeasurement> {
  const { home, memory, model: path, options } = place;
  const { terminal, signal } = context;
  const arms = journalArms(options.records, options.isQuick);
  const contextTokens = Math.max(options.tokens, tracedTokens) + spareTokens;
  const agents = await LocalAgents.start(arms.length);
  try {
    const order = { arms, model: { path, layers: options.layers, contextTokens }, memoryFolder: memory, signal };
    const rings = await prepareRings(order, {
      agents,
      said: ({ name }) => {
        terminal.progress(`making rings and their journals: ${name}`, 0);
      },
    });
    const fullest = present(
      rings.find(({ arm }) => arm.records === options.records),
      'one journal holds all records',
    );
    const rounds = options.rounds * options.starts;
    const appends = await measureAppends({
      ...{ full: fullest, diskFolder: home, memoryFolder: memory, rounds, appends: options.appends, signal },
      said: (round) => {
        terminal.progress(`appends, round ${round} of ${rounds}`, round / rounds);
      },
    });
    const measured = rings.map(({ arm }) => ({ arm, rounds: [] as RingRound[], held: null as Held | null }));
    let trace: JournalTrace | null = null;
    for (let start = 1; start <= options.starts; start += 1) {
      await runStart({ rings, measured, start, options }, context);
      if (start === options.starts) trace = await traced(fullest, join(home, 'trace'));
      for (const ring of rings) await ring.stop();
    }
    return {
      rings: measured.map(({ held, ...rest }) => ({ ...rest, held: present(held, 'it was asked') })),
      appends,
      trace: present(trace, 'there was a last start'),
    };
  } finally {
    await agents.stop();
  }
}

interface Start {
  readonly rings: readonly JournalRing[];
  /** What is found goes in here, in the order of the rings. */
  readonly measured: readonly { readonly rounds: RingRound[]; held: Held | null }[];
  /** From 1. */
  readonly start: number;
  readonly options: JournalBenchOptions;
}

/** Starts all agents, and runs all rounds. */
async function runStart({ rings, measured, start, options }: Start, { terminal }: CommandContext): Promise<void> {
  const { starts, rounds, tokens } = options;
  for (const [index, ring] of rings.entries()) {
    terminal.progress(`start ${start} of ${starts}: ${ring.arm.name}`, (start - 1) / starts);
    await ring.start();
    const found = present(measured[index], 'each ring has its place');
    found.held ??= { before: await ring.held(), after: 0 };
  }
  for (let round = 1 - warmUpRounds; round <= rounds; round += 1) {
    const label = round < 1 ? 'warming up' : `round ${round} of ${rounds}`;
    terminal.progress(`start ${start} of ${starts}, ${label}`, (start - 1 + Math.max(0, round) / rounds) / starts);
    const found = await runRound(rings, { tokens, round: round + warmUpRounds });
    if (round > 0) for (const [index, drawn] of found.entries()) measured[index]?.rounds.push(drawn);
  }
  for (const [index, ring] of rings.entries()) {
    const found = present(measured[index], 'each ring has its place');
    found.held = { before: present(found.held, 'it was asked').before, after: await ring.held() };
  }
}

/** Rings draw in turn, some tokens at a stretch. */
async function runRound(
  rings: readonly JournalRing[],
  { tokens, round }: { readonly tokens: number; readonly round: number },
): Promise<readonly RingRound[]> {
  const drawn = rings.map((): Drawn[] => []);
  const stretches = Math.max(1, Math.floor(tokens / stretchTokens));
  const first = round * stretches;
  for (let stretch = first; stretch < first + stretches; stretch += 1) {
    for (const at of turnsOf(rings.length, stretch)) {
      const ring = present(rings[at], 'an index is that of a ring');
      drawn[at]?.push(await ring.decode(Math.min(tokens, stretchTokens)));
    }
  }
  return drawn.map(ringRound);
}

/** @throws TRACE_UNAVAILABLE */
async function traced(ring: JournalRing, path: string): Promise<JournalTrace> {
  const folder = await realpath(ring.folder);
  const lines = await traceWhile({ pid: ring.agent.pid, path }, async () => {
    await ring.decode(tracedTokens);
  });
  const calls = readTrace(lines, folder);
  // A head commits before it gives a token away (J8): a trace that shows no write has not seen what it was made for.
  if (calls.writes === 0)
    throw new P4Error('TRACE_UNAVAILABLE', { program: 'strace', why: 'it showed no write to the journal' });
  return { tokens: tracedTokens, arm: ring.arm, calls };
}

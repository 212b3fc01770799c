/**
 * `npm run bench`: a ring of two stages against the uncut model.
 *
 * It makes a model of about 200 million parameters from a seed, runs the uncut model in one process, the same model cut
 * into two stages under one agent, and the same stages under two agents, in alternating rounds, and prints medians,
 * ratios and whether the targets were met. Exit status 0 whatever they come to; another when something broke.
 * With `--journal` it measures what the journal costs instead (`journal-bench.ts`).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

import { Command, CommanderError } from 'commander';

import { P4Error } from '../../protocol/errors.ts';
import { modeOf, runCommand, type CommandContext } from '../../provisioner/command.ts';
import { benchModelShape, writeRandomModel, type RandomModelShape } from '../../model/random-model.ts';
import { addBenchOptions, benchOptions, type BenchOptions } from './bench-options.ts';
import { runRounds } from './bench-run.ts';
import { LocalRings } from '../fixture/local-rings.ts';
import { benchJournal } from './journal-bench.ts';
import { addJournalOptions, journalBenchOptions, type JournalOptionTexts } from './journal-options.ts';
import type { Arm } from './measurement.ts';
import { memoryUse } from './process-usage.ts';
import { figureLines, hopLines, machineLine, memoryLines, profileLines, verdictLine, type Machine } from './report.ts';
import type { ProcessMemory } from './report.ts';
import { RingArm } from './ring-arm.ts';
import { requireSameTokens, summarize, type Summary } from './summary.ts';
import { UncutArm } from './uncut-arm.ts';

interface Found {
  readonly summary: Summary;
  readonly memory: readonly ProcessMemory[];
}

/** Tokens beyond the prompt and what is drawn. */
const spareTokens = 64;

async function bench(options: BenchOptions, context: CommandContext): Promise<number> {
  const { terminal, signal } = context;
  signal.throwIfAborted();
  const loadAtStart = loadavg()[0] ?? 0;
  const home = await mkdtemp(join(tmpdir(), 'p4-bench-'));
  try {
    const shape = { ...benchModelShape, layers: options.layers };
    const path = join(home, 'bench.gguf');
    terminal.note('Making the model and its slices ...');
    await writeRandomModel(path, shape);
    const found = await measure({ options, shape, path }, context);
    const machine = {
      cores: availableParallelism(),
      processor: cpus()[0]?.model ?? 'unknown',
      loadAtStart,
      loadAtEnd: loadavg()[0] ?? 0,
    };
    report({ options, machine, found }, context);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
  return 0;
}

interface Place {
  readonly options: BenchOptions;
  readonly shape: RandomModelShape;
  readonly path: string;
}

/** Loads every arm, measures them, and leaves no process behind. */
async function measure({ options, shape, path }: Place, context: CommandContext): Promise<Found> {
  const { layers, rounds, tokens, promptTokens } = options;
  const contextTokens = Math.max(promptTokens, tokens) + spareTokens;
  const model = { path, layers, contextTokens };
  const rings = await LocalRings.start(2);
  try {
    const { signal } = context;
    const ring = { model, stages: 2, signal };
    const oneAgent = await RingArm.load(rings, { ...ring, name: 'one agent', agents: 1 });
    const twoAgents = await RingArm.load(rings, { ...ring, name: 'two agents', agents: 2 });
    const uncut = await UncutArm.open({ ...model, threads: 1 }, signal);
    try {
      const arms = { uncut, 'one agent': oneAgent, 'two agents': twoAgents };
      const prompt = Array.from({ length: promptTokens }, (_, index) => (index * 7919 + 1) % shape.vocabularySize);
      const order = { rounds, tokens, prompt, arms, echoPort: uncut.echoPort };
      const measured = await runRounds(order, context);
      requireSameTokens(measured.rounds);
      const processes = {
        uncut: uncut.processes,
        'one agent': oneAgent.processes,
        'two agents': twoAgents.processes,
      };
      const links = await twoAgents.links();
      return {
        summary: summarize({ ...measured, processes, promptTokens, links }),
        memory: memoryOf(Object.values(arms)),
      };
    } finally {
      await uncut.close();
    }
  } finally {
    await rings.stop();
  }
}

/** Each process once: the head's agent serves two arms. */
function memoryOf(arms: readonly Arm[]): readonly ProcessMemory[] {
  const processes = new Map(
    arms.flatMap(({ name, processes }) =>
      processes.map((process) => [
        process.pid,
        { ...process, name: process.role === 'stage' ? `${process.name}, ${name}` : process.name },
      ]),
    ),
  );
  return [...processes.values()].map(({ name, role, pid }) => ({ name, role, pid, ...memoryUse(pid) }));
}

interface Reported {
  readonly options: BenchOptions;
  readonly machine: Machine;
  readonly found: Found;
}

function report({ options, machine, found }: Reported, { terminal }: CommandContext): void {
  const { summary, memory } = found;
  const { rounds, tokens, promptTokens, layers } = options;
  terminal.event({ event: 'bench', rounds, tokens, promptTokens, layers, machine, ...summary, memory });
  terminal.line(
    `A llama model of ${layers} layers in Q8_0, decode: fast, greedy, 1 thread per stage; ${rounds} rounds, each of ` +
      `${tokens} tokens and a prompt of ${promptTokens}.`,
  );
  terminal.line(machineLine(machine));
  const isMissed = summary.verdicts.some(({ isMet }) => !isMet);
  const parts = [
    figureLines(summary),
    hopLines(summary),
    memoryLines(memory),
    ...(isMissed ? [profileLines(summary)] : []),
    summary.verdicts.map(verdictLine),
  ];
  for (const lines of parts) terminal.line(`\n${lines.join('\n')}`);
}

const program = addJournalOptions(addBenchOptions(new Command('bench')))
  .exitOverride()
  .configureOutput({ outputError: () => undefined })
  .action((texts: JournalOptionTexts) =>
    runCommand(modeOf(texts), (context) =>
      texts.journal === true ? benchJournal(journalBenchOptions(texts), context) : bench(benchOptions(texts), context),
    ),
  );

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? 0 : commandLineExit(error);
}

function commandLineExit(error: CommanderError): number {
  const wrong = new P4Error('COMMAND_LINE_INVALID', { found: error.message.replace(/^error: /, '') });
  process.stderr.write(`${wrong.message}\n`);
  return wrong.rule.exit;
}

/**
 * The parts of the benchmark one after the other, each with rings of its own under the same two agents, and one table of
 * every figure with its target. Every ratio is one within a round, to the arm that its figure names.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { CommandContext } from '../../provisioner/command.ts';
import { LocalRings } from '../fixture/local-rings.ts';
import { BenchModels } from './bench-models.ts';
import type { BenchSizes, RingBenchOptions } from './bench-options.ts';
import { loadNow, machineLine, machineNow, type Machine } from './machine.ts';
import type { BenchPlace, PartName, PartReport } from './part.ts';
import { partTable } from './part-table.ts';
import { verdictLines } from './verdict.ts';

/** @throws what a part fails with; CANCELLED */
export async function benchRings(options: RingBenchOptions, context: CommandContext): Promise<number> {
  const { terminal, signal } = context;
  signal.throwIfAborted();
  const loadAtStart = loadNow();
  const home = await mkdtemp(join(tmpdir(), 'p4-bench-'));
  try {
    const { sizes, baseline } = options;
    terminal.line(sizesLine(sizes));
    const models = new BenchModels({ folder: home, shapes: sizes.shapes, terminal });
    const rings = await LocalRings.start(2);
    try {
      const reports = await runParts(options.parts, { rings, models, sizes, baseline, context });
      report({ options, machine: machineNow(loadAtStart), reports }, context);
    } finally {
      await rings.stop();
    }
  } finally {
    await rm(home, { recursive: true, force: true });
  }
  return 0;
}

type Reports = readonly (PartReport & { readonly name: PartName })[];

async function runParts(names: readonly PartName[], place: BenchPlace): Promise<Reports> {
  const { terminal, signal } = place.context;
  const reports: (PartReport & { name: PartName })[] = [];
  for (const [index, name] of names.entries()) {
    signal.throwIfAborted();
    terminal.note(`Part ${index + 1} of ${names.length}: ${name} ...`);
    const found = await partTable[name](place);
    terminal.endProgress();
    // At once: a run that is cut short has told what it found.
    for (const lines of found.blocks) terminal.line(`\n${lines.join('\n')}`);
    reports.push({ name, ...found });
  }
  return reports;
}

interface Reported {
  readonly options: RingBenchOptions;
  readonly machine: Machine;
  readonly reports: Reports;
}

function report({ options: { sizes }, machine, reports }: Reported, { terminal }: CommandContext): void {
  const { rounds, tokens, promptTokens, layers } = sizes;
  const verdicts = reports.flatMap((part) => part.verdicts);
  const parts = Object.fromEntries(reports.map(({ name, figures }) => [name, figures]));
  terminal.event({ event: 'bench', rounds, tokens, promptTokens, layers, machine, parts, verdicts });
  terminal.line(`\n${machineLine(machine)}\n`);
  terminal.line(verdictLines(verdicts).join('\n'));
}

const sizesLine = ({ layers, rounds, tokens, promptTokens }: BenchSizes): string =>
  `A llama model of ${layers} layers in Q8_0, decode: fast, greedy, 1 thread per stage; ${rounds} rounds, each of ` +
  `${tokens} tokens and a prompt of ${promptTokens}.`;

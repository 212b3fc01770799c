/** `load`: cuts a plan's model, loads its ring, and says where the generation stands. */
import type { Command } from 'commander';

import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import { layersText, type Device, type Plan } from '../protocol/plan.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import type { StageCpus } from './cpus/allotment.ts';
import { stageCpusJson, stageCpusText } from './cpus/allotment-text.ts';
import { FleetConnection } from './fleet-connection.ts';
import { commandWays } from './fleet-ways.ts';
import { generationPath } from './generation-path.ts';
import type { LoadOutcome } from './loader-step.ts';
import { openPlan } from './opened-plan.ts';
import type { PlannedSlice } from './plan-model.ts';
import { loadRing, type RingLoad } from './ring-load.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';
import type { Terminal } from './terminal.ts';
import { bytesText } from './text-table.ts';

interface LoadOptions {
  readonly state?: string;
  readonly json?: boolean;
}

export function addLoadCommand(program: Command): void {
  program
    .command('load')
    .description(
      "cuts a plan's model and loads its stages; the same plan again confirms what stands and mends what was lost",
    )
    .argument('<plan>', 'the plan file')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines')
    .action((plan: string, options: LoadOptions) =>
      runCommand(modeOf(options), (context) => load(userPath(plan), chosenState(options.state), context)),
    );
}

async function load(planPath: string, state: StateFolder, context: CommandContext): Promise<number> {
  const opened = await openPlan(planPath);
  const fleet = await FleetConnection.open(state, await commandWays(state, context));
  try {
    const load = await loadRing({ opened, state, fleet }, context);
    reportLoad(context.terminal, { ...load, plan: opened.plan, state });
  } finally {
    await fleet.close();
  }
  return 0;
}

export interface LoadReport extends RingLoad {
  readonly plan: Plan;
  readonly state: StateFolder;
}

/** @throws the failure of a load that failed, with what became of its parts */
export function reportLoad(terminal: Terminal, report: LoadReport): void {
  const { plan, state, slices, cpus, delivered, outcome } = report;
  if (outcome.kind === 'failed') throw loadFailure(terminal, outcome);
  const { generation } = outcome.load;
  const file = generationPath(state, plan.ring);
  const history = historyOf(outcome, report);
  if (delivered.length > 0) {
    const parts = delivered.map(({ host, sentBytes }) => `${bytesText(sentBytes)} to ${host}`);
    terminal.line(`Sent ${parts.join(', ')}.`);
  }
  terminal.line(`Ring ${plan.ring} ${historyTexts[history]}: generation ${generation}, written in ${file}`);
  terminal.line(stageLines(plan, slices, cpus).join('\n'));
  terminal.event({
    event: 'ready',
    ring: plan.ring,
    generation,
    generationFile: file,
    replayed: outcome.replayed,
    mended: history === 'mended',
    delivered,
    stages: plan.stages.map(({ index, host, layers, device }) => ({
      ...{ node: index, host, layers: layersText(layers), device: deviceText(device) },
      ...{ sliceId: slices[index]?.id, bytes: slices[index]?.bytes, ...stageCpusJson(cpusOf(cpus, index)) },
    })),
  });
}

type LoadHistory = 'new' | 'finished' | 'mended' | 'stood';

const historyTexts: Readonly<Record<LoadHistory, string>> = {
  new: 'is ready',
  finished: 'is ready: an earlier load had been cut short',
  mended: 'was lost, and is ready again',
  stood: 'stands as it was loaded before',
};

function historyOf({ replayed }: { readonly replayed: boolean }, { stoodBefore, isMended }: RingLoad): LoadHistory {
  if (!replayed) return 'new';
  if (!stoodBefore) return 'finished';
  return isMended ? 'mended' : 'stood';
}

function loadFailure(terminal: Terminal, outcome: Extract<LoadOutcome, { kind: 'failed' }>): P4Error {
  const { failure, host, withdrawn, left } = outcome;
  const agents = { withdrawn, left: left.map((part) => ({ host: part.host, code: part.failure.code })) };
  terminal.event({ event: 'load-failed', host, ...agents });
  if (withdrawn.length > 0) terminal.note(`Taken down again on: ${withdrawn.join(', ')}.`);
  for (const part of left) {
    terminal.note(
      `Not taken down on ${part.host} (${part.failure.code}): run \`npm run unload\` when it answers again.`,
    );
  }
  return new P4Error(failure.code, { ...(host === null ? {} : { host }), ...failure.facts });
}

/** One line for each stage. */
export const stageLines = (
  plan: Plan,
  slices: readonly PlannedSlice[],
  cpus: readonly StageCpus[],
): readonly string[] =>
  plan.stages.map(({ index, host, layers, device }) => {
    const size = bytesText(slices[index]?.bytes ?? 0);
    const where = device.kind === 'cpu' ? '' : `, ${deviceText(device)}`;
    return `stage ${index} on ${host}: layers ${layersText(layers)}${where}, ${size}, ${stageCpusText(cpusOf(cpus, index))}`;
  });

const cpusOf = (cpus: readonly StageCpus[], index: number): StageCpus =>
  present(cpus[index], 'each stage has its threads');

const deviceText = (device: Device): string =>
  device.kind === 'cpu' ? 'cpu' : `gpu ${device.index}, ${device.layers} layers`;

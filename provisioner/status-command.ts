/** `status`: what agents, rings, stages, links and journals are doing. */
import type { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { Plan } from '../protocol/plan.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { commandWays } from './fleet-ways.ts';
import { readGeneration, readGenerations, type KeptGeneration } from './generation-file.ts';
import { openPlan, ringHosts } from './opened-plan.ts';
import { replaysOf, type Replay } from './ring-replay.ts';
import { chosenState, isDefaultState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';
import { isAllReady, mergedRings, statusLines, type HostAnswer, type KnownRings } from './status-table.ts';

interface StatusOptions {
  readonly state?: string;
  readonly json?: boolean;
}

/** Exit status when an agent does not answer or a ring is not ready. */
const notReadyExit = 3;

export function addStatusCommand(program: Command): void {
  program
    .command('status')
    .description('shows agents, rings, stages, links and journals; exit status 3 when something is not ready')
    .argument('[plan]', 'a plan file: show its ring alone')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines')
    .action((plan: string | undefined, options: StatusOptions) =>
      runCommand(modeOf(options), async (context) => {
        const opened = plan === undefined ? null : await openPlan(userPath(plan));
        return status(opened?.plan ?? null, chosenState(options.state), context);
      }),
    );
}

async function status(plan: Plan | null, state: StateFolder, { terminal, signal }: CommandContext): Promise<number> {
  const fleet = await FleetConnection.open(state, await commandWays(state, { terminal, signal }));
  try {
    const hosts = plan === null ? fleet.hosts : ringHosts(plan);
    const answers = await Promise.all(hosts.map((host) => ask(fleet, { host, ring: plan?.ring ?? '', signal })));
    signal.throwIfAborted();
    const loads = await knownLoads(plan, state);
    const replays = replaysKnown(loads, answers, state);
    const known: KnownRings = {
      replays: new Map(replays.map((one) => [one.ring, one])),
      hosts: new Map(loads.map((load) => [load.plan.ring, ringHosts(load.plan)])),
    };
    const isReady = isAllReady(answers, known) && (plan === null || isLoaded(answers));
    terminal.line(statusLines(answers, plan?.ring ?? null, known).join('\n'));
    for (const { host, address, answer } of answers) {
      terminal.event({
        event: 'agent',
        host,
        address,
        ...(answer.kind === 'status'
          ? { status: answer.status }
          : { error: { code: answer.error.code, facts: answer.error.facts } }),
      });
    }
    for (const { ring, parts, health } of mergedRings(answers, known)) {
      const reasons = parts.filter(({ reason }) => reason !== '').map(({ host, reason }) => ({ host, reason }));
      terminal.event({ event: 'ring', ring, ...health, reasons });
    }
    for (const { ring, aim, empty, command } of replays) {
      terminal.event({
        event: aim === 'ready' ? 'replay' : 'half-unloaded',
        ring,
        emptyNodes: empty.map(({ node }) => node),
        command,
      });
    }
    terminal.event({ event: 'status', ready: isReady && replays.length === 0 });
    return isReady && replays.length === 0 ? 0 : notReadyExit;
  } finally {
    await fleet.close();
  }
}

const isLoaded = (answers: readonly HostAnswer[]): boolean =>
  answers.every(({ answer }) => answer.kind === 'status' && answer.status.rings.length > 0);

/** Loads of this operator that stand, or whose loading or unloading was cut short and may be tried again. */
async function knownLoads(plan: Plan | null, state: StateFolder): Promise<readonly KeptGeneration[]> {
  const known =
    plan === null
      ? await readGenerations(state)
      : [await readGeneration(state, plan.ring)].filter((kept) => kept !== null);
  return known.filter(({ phase }) => phase === 'ready' || phase === 'loading' || phase === 'unloading');
}

function replaysKnown(
  loads: readonly KeptGeneration[],
  answers: readonly HostAnswer[],
  state: StateFolder,
): readonly Replay[] {
  const said = answers.flatMap(({ host, answer }) =>
    answer.kind === 'status' ? [{ host, status: answer.status }] : [],
  );
  // A variable of this terminal need not be set where the command is typed.
  return replaysOf(loads, said, isDefaultState(state) ? null : state.root);
}

interface StatusCall {
  readonly host: HostName;
  /** Empty for every ring. */
  readonly ring: string;
  readonly signal: AbortSignal;
}

/** An agent that does not answer is part of the status, not the end of the command. */
async function ask(fleet: FleetConnection, { host, ring, signal }: StatusCall): Promise<HostAnswer> {
  const address = fleet.addressText(host);
  try {
    const options = { deadlineMs: limits.answerMs, signal };
    const status = await fleet.client(host).call(['Agent', 'Status'], { ring }, options);
    return { host, address, answer: { kind: 'status', status } };
  } catch (error) {
    if (!(error instanceof P4Error)) throw error;
    return { host, address, answer: { kind: 'error', error } };
  }
}

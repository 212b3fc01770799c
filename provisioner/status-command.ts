/** `status`: what agents, rings, stages, links and journals are doing. */
import type { Command } from 'commander';

import { limits } from '../protocol/limits.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { askStatus, knownLoads, knownRings, notReadyExit } from './fleet-status.ts';
import { commandWays } from './fleet-ways.ts';
import { standsWithOtherPlan } from './loader-step.ts';
import { openPlan, ringHosts, type OpenedPlan } from './opened-plan.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';
import { isAllReady, mergedRings, statusLines, type HostAnswer, type KnownRings } from './status-table.ts';
import type { Terminal } from './terminal.ts';

interface StatusOptions {
  readonly state?: string;
  readonly json?: boolean;
}

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
        return status(opened, chosenState(options.state), context);
      }),
    );
}

async function status(
  opened: OpenedPlan | null,
  state: StateFolder,
  { terminal, signal }: CommandContext,
): Promise<number> {
  const plan = opened?.plan ?? null;
  const fleet = await FleetConnection.open(state, await commandWays(state, { terminal, signal }));
  try {
    const hosts = plan === null ? fleet.hosts : ringHosts(plan);
    const call = { ring: plan?.ring ?? '', samples: false, deadlineMs: limits.answerMs, signal };
    const answers = await Promise.all(hosts.map((host) => askStatus(fleet, { ...call, host })));
    signal.throwIfAborted();
    const loads = await knownLoads(plan, state);
    const known = knownRings(loads, answers, state);
    terminal.line(statusLines(answers, plan?.ring ?? null, known).join('\n'));
    if (opened !== null && loads.some((load) => standsWithOtherPlan(load, opened.digest)))
      terminal.note(`The plan file has changed since ring ${opened.plan.ring} was loaded: it stands as it was then.`);
    tellRings(terminal, answers, known);
    const isReady = isAllReady(answers, known) && (plan === null || isLoaded(answers)) && known.replays.size === 0;
    terminal.event({ event: 'status', ready: isReady });
    return isReady ? 0 : notReadyExit;
  } finally {
    await fleet.close();
  }
}

/** What programs are told, and of rings that cannot be used from here. */
function tellRings(terminal: Terminal, answers: readonly HostAnswer[], known: KnownRings): void {
  for (const { host, address, answer } of answers) {
    const said =
      answer.kind === 'status'
        ? { status: answer.status }
        : { error: { code: answer.error.code, facts: answer.error.facts } };
    terminal.event({ event: 'agent', host, address, ...said });
  }
  for (const { ring, parts, health } of mergedRings(answers, known)) {
    const reasons = parts.filter(({ reason }) => reason !== '').map(({ host, reason }) => ({ host, reason }));
    terminal.event({ event: 'ring', ring, ...health, reasons });
    if (known.hosts.has(ring)) continue;
    terminal.note(`Ring ${ring}: no generation file here; who has it can use and unload it, others cannot.`);
  }
  for (const { ring, aim, empty, command } of known.replays.values()) {
    terminal.event({
      event: aim === 'ready' ? 'replay' : 'half-unloaded',
      ring,
      emptyNodes: empty.map(({ node }) => node),
      command,
    });
  }
}

const isLoaded = (answers: readonly HostAnswer[]): boolean =>
  answers.every(({ answer }) => answer.kind === 'status' && answer.status.rings.length > 0);

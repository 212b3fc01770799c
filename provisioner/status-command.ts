/** `status`: what agents, rings, stages, links and journals are doing. */
import type { Command } from 'commander';

import { limits } from '../protocol/limits.ts';
import type { Plan } from '../protocol/plan.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { askStatus, knownLoads, knownRings, notReadyExit } from './fleet-status.ts';
import { commandWays } from './fleet-ways.ts';
import { openPlan, ringHosts } from './opened-plan.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';
import { isAllReady, mergedRings, statusLines, type HostAnswer } from './status-table.ts';

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
        return status(opened?.plan ?? null, chosenState(options.state), context);
      }),
    );
}

async function status(plan: Plan | null, state: StateFolder, { terminal, signal }: CommandContext): Promise<number> {
  const fleet = await FleetConnection.open(state, await commandWays(state, { terminal, signal }));
  try {
    const hosts = plan === null ? fleet.hosts : ringHosts(plan);
    const call = { ring: plan?.ring ?? '', samples: false, deadlineMs: limits.answerMs, signal };
    const answers = await Promise.all(hosts.map((host) => askStatus(fleet, { ...call, host })));
    signal.throwIfAborted();
    const known = knownRings(await knownLoads(plan, state), answers, state);
    const replays = [...known.replays.values()];
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

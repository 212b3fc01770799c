/** `status`: what agents, rings, stages, links and journals are doing. */
import type { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { Plan } from '../protocol/plan.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { openPlan, ringHosts } from './opened-plan.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';
import { isAllReady, statusLines, type HostAnswer } from './status-table.ts';

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
  const fleet = await FleetConnection.open(state);
  try {
    const hosts = plan === null ? fleet.hosts : ringHosts(plan);
    const answers = await Promise.all(hosts.map((host) => ask(fleet, { host, ring: plan?.ring ?? '', signal })));
    signal.throwIfAborted();
    const isReady = isAllReady(answers) && (plan === null || isLoaded(answers));
    terminal.line(statusLines(answers, plan?.ring ?? null).join('\n'));
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
    terminal.event({ event: 'status', ready: isReady });
    return isReady ? 0 : notReadyExit;
  } finally {
    fleet.close();
  }
}

const isLoaded = (answers: readonly HostAnswer[]): boolean =>
  answers.every(({ answer }) => answer.kind === 'status' && answer.status.rings.length > 0);

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

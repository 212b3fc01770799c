/** `agents`: agents for local use, in the foreground, until Ctrl-C. */
import type { Command } from 'commander';

import { limits } from '../protocol/limits.ts';
import { agentLost } from './agent-process.ts';
import { modeOf, runCommand, type CommandContext } from './command.ts';
import { lastPort, LocalFleet, type LocalAgent } from './local-fleet.ts';
import { wholeNumber } from './number-option.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';

interface AgentsOptions {
  readonly count: string;
  readonly port: string;
  readonly state?: string;
  readonly json?: boolean;
}

export function addAgentsCommand(program: Command): void {
  program
    .command('agents')
    .description('starts agents on this machine and keeps them until Ctrl-C')
    .option('--count <number>', 'how many: one is enough, more are for trying out', '1')
    .option('--port <port>', 'port of the first agent; each further one has a port two higher', '7400')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines')
    .action((options: AgentsOptions) =>
      runCommand(modeOf(options), (context) => {
        const count = wholeNumber('--count', options.count, [1, limits.localAgents]);
        const firstPort = wholeNumber('--port', options.port, [1, 65_535 - lastPort(0, count)]);
        return runAgents({ state: chosenState(options.state), count, firstPort }, context);
      }),
    );
}

interface AgentsOrder {
  readonly state: StateFolder;
  readonly count: number;
  readonly firstPort: number;
}

async function runAgents(order: AgentsOrder, { terminal, signal }: CommandContext): Promise<number> {
  const fleet = await LocalFleet.start({ ...order, signal });
  try {
    for (const agent of fleet.agents) terminal.line(agentLine(agent));
    terminal.line(`State: ${order.state.root}`);
    terminal.line('Now, in another terminal: npm run load -- plans/stories.yaml');
    terminal.line('Ctrl-C ends the agents and every stage.');
    terminal.event({ event: 'ready', state: order.state.root, agents: fleet.agents });
    await untilAllEnded(fleet, { terminal, signal });
  } finally {
    terminal.note('Ending the agents ...');
    await fleet.stop();
  }
  // Ctrl-C is how this command is meant to end.
  return 0;
}

function agentLine({ host, address, port, pid, metricsPort }: LocalAgent): string {
  const metrics = metricsPort === null ? 'no metrics: its log says why' : `http://${address}:${metricsPort}/metrics`;
  return `Agent ${host} listens on ${address}:${port} (process ${pid}); ${metrics}`;
}

/**
 * Returns when the signal aborts.
 * @throws AGENT_LOST when no agent is left; one that ends before is reported, and the others go on
 */
async function untilAllEnded(fleet: LocalFleet, { terminal, signal }: CommandContext): Promise<void> {
  let left = fleet.agents.length;
  await new Promise<void>((resolve, reject) => {
    const interrupted = (): void => {
      resolve();
    };
    if (signal.aborted) interrupted();
    signal.addEventListener('abort', interrupted, { once: true });
    for (const end of fleet.ends) {
      void end.then((how) => {
        if (signal.aborted) return;
        left -= 1;
        if (left === 0) reject(agentLost(how));
        else terminal.failure(agentLost(how));
      });
    }
  });
}

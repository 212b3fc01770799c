/** How commands come to the agents of a fleet: to most at their addresses, to some by ssh (`ssh-ways.ts`). */
import type { AgentWay } from './agent-client.ts';
import type { CommandContext } from './command.ts';
import { readFleet, type FleetHost } from './fleet-file.ts';
import type { StateFolder } from './state-folder.ts';

/** Ways to agents that are not dialled at their addresses. */
export interface AgentWays {
  /** `null` for a host that is. */
  to(host: FleetHost): AgentWay | null;
  close(): Promise<void>;
}

/** Every agent is dialled at its address. */
export const directWays: AgentWays = { to: () => null, close: () => Promise.resolve() };

/** As a command goes: questions on its terminal, ended with it. */
export async function commandWays(state: StateFolder, { terminal, signal }: CommandContext): Promise<AgentWays> {
  const hosts = (await readFleet(state)) ?? [];
  if (hosts.every(({ ssh }) => ssh === null)) return directWays;
  // What speaks ssh takes longer to load than a command to run, and most fleets do without.
  const [{ SshWays }, { presentOperator }, { TerminalPrompt }] = await Promise.all([
    import('./ssh-ways.ts'),
    import('./ssh/operator-config.ts'),
    import('./ssh/secret-prompt.ts'),
  ]);
  const prompt = new TerminalPrompt(() => {
    terminal.endProgress();
  });
  return SshWays.prepare({ state, operator: presentOperator(), prompt, signal });
}

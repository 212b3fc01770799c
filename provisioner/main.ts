/** The operator's commands. This file composes them; each command is a file of its own. */
import process from 'node:process';

import { Command, CommanderError } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { reportFailure } from './command.ts';
import { Terminal } from './terminal.ts';

type AddCommand = (program: Command) => void;

/** In the order of the help. Each is loaded when it is asked for: what one command needs, the others do not wait for. */
const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  demo: async () => (await import('./demo-command.ts')).addDemoCommand,
  agents: async () => (await import('./agents-command.ts')).addAgentsCommand,
  deploy: async () => (await import('./deploy/deploy-command.ts')).addDeployCommand,
  load: async () => (await import('./load-command.ts')).addLoadCommand,
  infer: async () => (await import('./infer-command.ts')).addInferCommand,
  settle: async () => (await import('./settle-command.ts')).addSettleCommand,
  status: async () => (await import('./status-command.ts')).addStatusCommand,
  watch: async () => (await import('./watch/watch-command.ts')).addWatchCommand,
  slices: async () => (await import('./slices-command.ts')).addSlicesCommand,
  unload: async () => (await import('./unload-command.ts')).addUnloadCommand,
};

const program = new Command('p4')
  .description('Runs one language model across several machines.')
  .exitOverride()
  // Reported below, as every other failure is.
  .configureOutput({ outputError: () => undefined })
  .helpCommand(false);

const terminal = new Terminal(process.argv.includes('--json') ? 'json' : 'text', {
  out: process.stdout,
  err: process.stderr,
});

try {
  const named = commands[process.argv[2] ?? ''];
  for (const load of named === undefined ? Object.values(commands) : [named]) (await load())(program);
  await program.parseAsync();
} catch (error) {
  process.exitCode = commandLineExit(error);
}

/** A wrong command line is a failure like others; help that was asked for is none. */
function commandLineExit(error: unknown): number {
  if (!(error instanceof CommanderError)) return reportFailure(terminal, error);
  if (error.exitCode === 0) return 0;
  // Without a command, commander prints the help and calls it an error.
  if (error.code === 'commander.help') return new P4Error('COMMAND_LINE_INVALID').rule.exit;
  return reportFailure(terminal, new P4Error('COMMAND_LINE_INVALID', { found: error.message.replace(/^error: /, '') }));
}

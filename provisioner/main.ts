/** The operator's commands. This file composes them; each command is a file of its own. */
import process from 'node:process';

import { Command, CommanderError } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { addAgentsCommand } from './agents-command.ts';
import { reportFailure } from './command.ts';
import { addDeployCommand } from './deploy/deploy-command.ts';
import { addDemoCommand } from './demo-command.ts';
import { addInferCommand } from './infer-command.ts';
import { addLoadCommand } from './load-command.ts';
import { addSettleCommand } from './settle-command.ts';
import { addSlicesCommand } from './slices-command.ts';
import { addStatusCommand } from './status-command.ts';
import { Terminal } from './terminal.ts';
import { addUnloadCommand } from './unload-command.ts';

const program = new Command('p4')
  .description('Runs one language model across several machines.')
  .exitOverride()
  // Reported below, as every other failure is.
  .configureOutput({ outputError: () => undefined })
  .helpCommand(false);

addDemoCommand(program);
addAgentsCommand(program);
addDeployCommand(program);
addLoadCommand(program);
addInferCommand(program);
addSettleCommand(program);
addStatusCommand(program);
addSlicesCommand(program);
addUnloadCommand(program);

const terminal = new Terminal(process.argv.includes('--json') ? 'json' : 'text', {
  out: process.stdout,
  err: process.stderr,
});

try {
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

/**
 * `p4` on a host, for root: what an operator's command cannot do from afar.
 *
 *     node agent/host/main.js journal check|repair|stats [--config FILE] [--json]
 *     node agent/host/main.js forget RING [--yes] [--config FILE] [--json]
 *
 * Exit status: 0 done; 2 to 4 as `protocol/errors.ts` says; `check` ends with 4 when the journal is damaged.
 */
import process from 'node:process';

import { Command, CommanderError } from 'commander';

import type { AgentConfig } from '../../protocol/agent-config.ts';
import { P4Error } from '../../protocol/errors.ts';
import { ringName } from '../../protocol/ids.ts';
import { readAgentConfig } from '../agent-config-file.ts';
import { forget } from './forget-command.ts';
import { checkJournal, journalStats, repair } from './journal-command.ts';
import { failed, outputOf, type Output } from './output.ts';
import { becomeOwner } from './rights.ts';

interface Options {
  readonly config: string;
  readonly json?: boolean;
  readonly yes?: boolean;
}

type Body = (config: AgentConfig, output: Output) => Promise<number>;

const isJson = process.argv.includes('--json');

async function run({ config: file, json }: Options, body: Body): Promise<void> {
  const config = await readAgentConfig(file);
  await becomeOwner(config.stateFolder);
  process.exitCode = await body(config, outputOf(json === true));
}

const withOptions = (command: Command): Command =>
  command
    .option('--config <file>', "the agent's configuration", '/etc/p4/agent.json')
    .option('--json', 'one JSON object instead of text');

// A journal is its owner's alone, one that is made anew, too.
process.umask(0o077);

const program = new Command('p4')
  .description('Looks after the p4 agent of this host, as root.')
  .exitOverride()
  .configureOutput({ outputError: () => undefined })
  .helpCommand(false);

const journal = program.command('journal').description("this host's journal");
const journalCommands: readonly (readonly [string, string, Body])[] = [
  ['check', 'reads all of it and says what is wrong, and where; changes nothing', checkJournal],
  ['repair', 'makes a journal of all that is whole, and says what is lost', repair],
  ['stats', 'what it holds', journalStats],
];
for (const [name, description, body] of journalCommands)
  withOptions(journal.command(name).description(description)).action((options: Options) => run(options, body));

withOptions(program.command('forget').description('gives a ring up on this host, without its generation'))
  .argument('<ring>', 'its name')
  .option('--yes', 'do not ask')
  .action((name: string, options: Options) =>
    run(options, async (config, output) => {
      await forget(config, { ring: ringName(name), isConfirmed: options.yes === true }, output);
      return 0;
    }),
  );

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = commandLineExit(error);
}

/** A wrong command line is a failure like others; help that was asked for is none. */
function commandLineExit(error: unknown): number {
  if (!(error instanceof CommanderError)) return failed(error, isJson);
  if (error.exitCode === 0) return 0;
  if (error.code === 'commander.help') return new P4Error('COMMAND_LINE_INVALID').rule.exit;
  return failed(new P4Error('COMMAND_LINE_INVALID', { found: error.message.replace(/^error: /, '') }), isJson);
}

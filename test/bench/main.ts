/**
 * `npm run bench`: rings of stages against the uncut model and against themselves.
 *
 * It makes models from a seed, loads rings of their stages under agents of its own, runs what is compared in alternating
 * rounds, and prints medians, spreads, ratios and whether the targets were met. Exit status 0 whatever they come to; another
 * when something broke. `--only` chooses parts (`part-table.ts`), `--decay` the one that takes as long as all others
 * (`decay-part.ts`); with `--journal` it measures what the journal costs instead (`journal-bench.ts`).
 */
import { Command, CommanderError } from 'commander';

import { P4Error } from '../../protocol/errors.ts';
import { modeOf, runCommand } from '../../provisioner/command.ts';
import { addBenchOptions, ringBenchOptions } from './bench-options.ts';
import { benchJournal } from './journal-bench.ts';
import { addJournalOptions, journalBenchOptions, type JournalOptionTexts } from './journal-options.ts';
import { benchRings } from './ring-bench.ts';

const program = addJournalOptions(addBenchOptions(new Command('bench')))
  .exitOverride()
  .configureOutput({ outputError: () => undefined })
  .action((texts: JournalOptionTexts) =>
    runCommand(modeOf(texts), (context) =>
      texts.journal === true
        ? benchJournal(journalBenchOptions(texts), context)
        : benchRings(ringBenchOptions(texts), context),
    ),
  );

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? 0 : commandLineExit(error);
}

function commandLineExit(error: CommanderError): number {
  const wrong = new P4Error('COMMAND_LINE_INVALID', { found: error.message.replace(/^error: /, '') });
  process.stderr.write(`${wrong.message}\n`);
  return wrong.rule.exit;
}

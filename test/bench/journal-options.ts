/** What the benchmark of the journal is told on its command line: `npm run bench -- --journal`. */
import { statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';

import type { Command } from 'commander';

import { P4Error } from '../../protocol/errors.ts';
import { wholeNumber } from '../../provisioner/number-option.ts';
import { benchOptions, type BenchOptions, type OptionTexts } from './bench-options.ts';
import { recordsEachSession } from './journal-filling.ts';

export interface JournalBenchOptions extends Pick<BenchOptions, 'rounds' | 'tokens' | 'layers'> {
  /** Finished records in the fullest journal; the others hold a tenth and a hundredth of it, and none. */
  readonly records: number;
  /** How often all agents are started anew, each time with all rounds. */
  readonly starts: number;
  /** Records that each journal takes in a round, one after the other. */
  readonly appends: number;
  /** A folder on a file system in memory. */
  readonly memoryFolder: string;
  /** Whether only the emptiest and the fullest journal are measured. */
  readonly isQuick: boolean;
}

export interface JournalOptionTexts extends OptionTexts {
  readonly journal?: boolean;
  readonly records: string;
  readonly starts: string;
  readonly appends: string;
  readonly memory: string;
}

/** Finished records of a day and more of a busy ring; beyond it the journal's size limit has its say. */
const mostRecords = 4_000_000;
/** The least journal is a hundredth of the fullest, and holds whole sessions. */
const recordsStep = 100 * recordsEachSession;

export function addJournalOptions(program: Command): Command {
  return program
    .option('--journal', 'measures what the journal costs instead: full against empty, on disk against in memory')
    .option('--records <count>', 'with --journal: finished records in the fullest journal', '1000000')
    .option('--starts <count>', 'with --journal: starts of all agents, each with all rounds', '3')
    .option('--appends <count>', 'with --journal: records that each journal takes in a round', '200')
    .option('--memory <folder>', 'with --journal: a folder in memory, which costs no sync', '/dev/shm');
}

const quick = { rounds: '1', starts: '1', tokens: '8', layers: '2', records: String(recordsStep), appends: '20' };

/** @throws INVALID_ARGUMENT */
export function journalBenchOptions(given: JournalOptionTexts): JournalBenchOptions {
  const isQuick = given.quick === true;
  const texts = isQuick ? { ...given, ...quick } : given;
  const { rounds, tokens, layers } = benchOptions(texts);
  const records = wholeNumber('--records', texts.records, [recordsStep, mostRecords]);
  if (records % recordsStep !== 0)
    throw new P4Error('INVALID_ARGUMENT', {
      option: '--records',
      found: records,
      expected: `a multiple of ${recordsStep}`,
    });
  return {
    ...{ rounds, tokens, layers, records, isQuick },
    starts: wholeNumber('--starts', texts.starts, [1, 100]),
    appends: wholeNumber('--appends', texts.appends, [1, 10_000]),
    memoryFolder: texts.memory,
  };
}

/**
 * What is measured is a disk against none: folders that are not what they are taken for would make the ratio 1.
 * @throws INVALID_ARGUMENT
 */
export async function requireFileSystems({ memoryFolder }: JournalBenchOptions): Promise<void> {
  if (!(await isInMemory(memoryFolder)))
    throw new P4Error('INVALID_ARGUMENT', {
      option: '--memory',
      found: memoryFolder,
      expected: 'a folder on a file system in memory (tmpfs)',
    });
  if ((await isInMemory(tmpdir())) !== false)
    throw new P4Error('INVALID_ARGUMENT', {
      what: 'folder for temporary files (TMPDIR)',
      found: tmpdir(),
      expected: 'a folder on a disk: journals are written there',
    });
}

/** As the kernel numbers them: tmpfs and ramfs. */
const memoryFileSystems: ReadonlySet<number> = new Set([0x0102_1994, 0x8584_58f6]);

/** `null` for a folder that cannot be asked. */
async function isInMemory(folder: string): Promise<boolean | null> {
  return statfs(folder).then(
    ({ type }) => memoryFileSystems.has(type),
    () => null,
  );
}

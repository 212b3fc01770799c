/**
 * A stage: one process, one slice.
 *
 *     node stage/main.js --runtime <folder> [--ends-with-input]
 *
 * `--ends-with-input`: end when standard input closes, so that a child never outlives the agent that holds the other end.
 * It is killed or told to end (SIGTERM, `stop`); Ctrl-C in a terminal goes to every process there, and is the agent's.
 */
import { parseArgs } from 'node:util';

import { P4Error } from '../protocol/errors.ts';
import { claimRuntimeFolder } from './runtime-folder.ts';
import { StageLog } from './stage-log.ts';
import { StageProcess } from './stage-process.ts';

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { runtime: { type: 'string' }, 'ends-with-input': { type: 'boolean', default: false } },
  });
  if (values.runtime === undefined) {
    throw new P4Error('INVALID_ARGUMENT', { what: '--runtime', found: 'nothing', expected: 'a folder' });
  }
  process.on('SIGINT', () => undefined);
  const stage = new StageProcess(await claimRuntimeFolder(values.runtime), log);
  process.on('SIGTERM', () => {
    stage.stop('SIGTERM');
  });
  if (values['ends-with-input']) {
    process.stdin.once('close', () => {
      stage.stop('standard input closed');
    });
    process.stdin.on('error', () => undefined);
    process.stdin.resume();
  }
  await stage.listen();
}

const log = new StageLog();
try {
  await main();
} catch (error) {
  if (!(error instanceof P4Error)) throw error;
  log.write('not-started', { code: error.code, ...error.facts });
  process.exit(error.rule.exit);
}

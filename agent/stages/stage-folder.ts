/**
 * A stage's own folder below the runtime folder, closed to other users: its two sockets, and where a unit is the stage, the
 * files in which the unit tells of itself.
 *
 * The scripts `stage-start` and `stage-end` of `units/` write those files, each under another name first. None is on a disk:
 * the runtime folder is in memory, and none holds a generation (G4).
 */
import { chmodSync, rmSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { makeFolder } from '../../model/made-folder.ts';
import { P4Error } from '../../protocol/errors.ts';
import { controlSocketName, dataSocketName } from '../../protocol/stage-control.ts';
import { connectOnce } from './control-client.ts';

/** The number of the stage's process. */
export const pidFileName = 'pid';
/** How the unit ended: systemd's result, `exited`, `killed` or `dumped`, and the exit status or the signal. */
export const exitFileName = 'exit';
/** What the stage said on standard error. */
export const logFileName = 'log';

const ownNames = [
  ...[controlSocketName, dataSocketName, pidFileName, exitFileName, logFileName],
  ...[`${pidFileName}.new`, `${exitFileName}.new`],
];

/** @throws STAGE_RUNTIME_FOLDER when it cannot be made, or a stage lives in it */
export async function makeStageFolder(path: string): Promise<void> {
  try {
    await makeFolder(path, 0o700);
    chmodSync(path, 0o700);
  } catch (cause) {
    throw new P4Error('STAGE_RUNTIME_FOLDER', { path, reason: String(cause) }, cause);
  }
  // Its sockets are removed with the process; so it must not be another's that lives.
  const attempt = await connectOnce(join(path, controlSocketName));
  if (attempt.kind === 'failed') return;
  attempt.socket.destroy();
  throw new P4Error('STAGE_RUNTIME_FOLDER', { path, reason: 'another stage lives in it' });
}

/** What a dead stage leaves behind; a killed one leaves its sockets, too. */
export function removeStageFolder(path: string): void {
  for (const name of ownNames) rmSync(join(path, name), { force: true });
  try {
    rmdirSync(path);
  } catch {
    // Somebody put something else there; it is theirs.
  }
}

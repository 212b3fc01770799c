/** Folders that stages of a former agent left behind: a killed agent ends no stage in order, and removes no folder. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { controlSocketName } from '../../protocol/stage-control.ts';
import { connectOnce } from './control-client.ts';
import { removeStageFolder } from './stage-folder.ts';

/** Removes every stage's folder in which none lives; what else is in one is somebody's, and stays. */
export async function removeDeadStages(runtimeFolder: string): Promise<void> {
  for (const entry of readdirSync(runtimeFolder, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeDead(join(runtimeFolder, entry.name));
  }
}

async function removeDead(folder: string): Promise<void> {
  const attempt = await connectOnce(join(folder, controlSocketName));
  if (attempt.kind === 'connected') attempt.socket.destroy();
  else removeStageFolder(folder);
}

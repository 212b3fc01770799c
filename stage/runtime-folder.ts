/** The folder of a stage's two sockets: its own, closed to other users, and without the sockets of a dead process. */
import { rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { controlSocketName, dataSocketName } from '../protocol/stage-control.ts';

export interface RuntimeFolder {
  readonly controlSocketPath: string;
  readonly dataSocketPath: string;
}

const othersRights = 0o077;

/**
 * @throws STAGE_RUNTIME_FOLDER when it is no folder, others may enter it, its path is too long for a socket, or another
 *   stage lives in it
 */
export async function claimRuntimeFolder(path: string): Promise<RuntimeFolder> {
  const folder = {
    controlSocketPath: join(path, controlSocketName),
    dataSocketPath: join(path, dataSocketName),
  };
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() !== true) throw unusable(path, 'there is no such folder');
  if ((stats.mode & othersRights) !== 0) throw unusable(path, 'other users may enter it');
  if (Buffer.byteLength(folder.controlSocketPath) > limits.socketPathBytes) {
    throw unusable(path, `a socket's path has at most ${limits.socketPathBytes} bytes`);
  }
  if (await isAnswered(folder.controlSocketPath)) throw unusable(path, 'another stage lives in it');
  removeSockets(folder);
  return folder;
}

export function removeSockets({ controlSocketPath, dataSocketPath }: RuntimeFolder): void {
  rmSync(controlSocketPath, { force: true });
  rmSync(dataSocketPath, { force: true });
}

/** A socket whose process is dead refuses at once. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}

const unusable = (path: string, reason: string): P4Error => new P4Error('STAGE_RUNTIME_FOLDER', { path, reason });

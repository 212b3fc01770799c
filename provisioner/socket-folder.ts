/** A folder for sockets that this user alone may reach: short, since a socket's path is, and gone with the command. */
import { randomBytes } from 'node:crypto';
import { mkdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { limits } from '../protocol/limits.ts';
import { unwritable } from './durable-file.ts';

/** `/p4-`, twelve digits, and a socket's name of at most sixteen bytes. */
const roomBytes = 4 + 12 + 1 + 16;

export class SocketFolder {
  /** Absolute path. */
  readonly path: string;
  #making: Promise<void> | null = null;

  private constructor(path: string) {
    this.path = path;
  }

  /** Nothing is made yet. */
  static async choose(): Promise<SocketFolder> {
    const base = await runtimeBase();
    const isShort = Buffer.byteLength(base) + roomBytes <= limits.socketPathBytes;
    return new SocketFolder(join(isShort ? base : tmpdir(), `p4-${randomBytes(6).toString('hex')}`));
  }

  /** @throws STATE_UNWRITABLE */
  make(): Promise<void> {
    this.#making ??= this.#make();
    return this.#making;
  }

  async remove(): Promise<void> {
    if (this.#making === null) return;
    await this.#making.then(
      () => rm(this.path, { recursive: true, force: true }),
      () => undefined,
    );
  }

  async #make(): Promise<void> {
    try {
      // Whoever was faster with this name has not made it for us: then it fails.
      await mkdir(this.path, { mode: 0o700 });
    } catch (error) {
      throw unwritable(this.path, error);
    }
  }
}

/** Where sockets may be: the session's own runtime folder, else the one for temporary files. */
export async function runtimeBase(): Promise<string> {
  const folder = process.env['XDG_RUNTIME_DIR'];
  if (folder === undefined || folder === '') return tmpdir();
  const found = await stat(folder).catch(() => null);
  return found?.isDirectory() === true ? folder : tmpdir();
}

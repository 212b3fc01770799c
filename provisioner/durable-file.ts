/**
 * Files that are there, whole, after a power loss at any moment; and that nobody sees half-written.
 *
 * A file is written beside its place under a temporary name, made durable, and renamed; then the folder is made durable,
 * which is what makes the new name survive.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncFolder } from '../model/folder-sync.ts';
import { makeFolder } from '../model/made-folder.ts';
import { P4Error } from '../protocol/errors.ts';
import { systemCode } from '../protocol/tls-identity.ts';

/** Nobody but the owner reads what is in the state folder. */
export const ownerFileMode = 0o600;
const ownerFolderMode = 0o700;

export interface DurableWrite {
  readonly path: string;
  readonly text: string;
  /** Exact, whatever the process's umask. */
  readonly mode: number;
}

/**
 * Replaces a file, or makes it. When this returns, the file is durable; when it throws, the former one is untouched.
 * The folder has to be there.
 *
 * @throws STATE_UNWRITABLE
 */
export async function writeDurably({ path, text, mode }: DurableWrite): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await writeNew({ path: temporary, text, mode });
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw unwritable(path, error);
  }
}

/** Removes a file. When this returns, it stays gone. @throws STATE_UNWRITABLE */
export async function removeDurably(path: string): Promise<void> {
  try {
    await rm(path);
    await syncFolder(dirname(path));
  } catch (error) {
    throw unwritable(path, error);
  }
}

/**
 * Makes a folder, and those above it, for the owner only, and makes their names durable. One that is there is left
 * as it is.
 *
 * @throws STATE_UNWRITABLE
 */
export async function makeOwnerFolder(path: string): Promise<void> {
  try {
    const first = await makeFolder(path, ownerFolderMode);
    if (first === undefined) return;
    // Each new folder's name stands in the folder above it.
    for (let folder = path; folder !== dirname(first); folder = dirname(folder)) await syncFolder(dirname(folder));
  } catch (error) {
    throw unwritable(path, error);
  }
}

/**
 * A file's text, `null` where there is no such file.
 *
 * @throws STATE_UNREADABLE
 */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw new P4Error('STATE_UNREADABLE', { path, why: systemCode(error) }, error);
  }
}

/** The error of a path in the state folder that cannot be written. */
export const unwritable = (path: string, cause: unknown): P4Error =>
  new P4Error('STATE_UNWRITABLE', { path, why: systemCode(cause) }, cause);

async function writeNew({ path, text, mode }: DurableWrite): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    await file.chmod(mode);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Puts a repaired journal in the place of a damaged one, whole or not at all: each step can be done again, so a swap
 * that was cut off is finished by running the repair again, and until then no agent opens what is there.
 *
 * The damaged files stay, under a folder of their own beside the journal.
 */
import { link, mkdir, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { syncFolder } from '../../model/folder-sync.ts';
import { makeFolder } from '../../model/made-folder.ts';
import { isSystemError } from './failure.ts';

/** Where the new journal is made, and, by this name, is complete. */
const making = 'repair-new';
const ready = 'repair-ready';
/** In the new journal's folder: the name of the folder for the damaged files. */
export const asideFileName = 'aside';

const journalFiles = ['journal.sqlite', 'journal.sqlite-wal', 'journal.mark'] as const;

export const isRepairUnfinished = (folder: string): Promise<boolean> => isThere(join(folder, ready));

/** An empty folder for the new journal; what a repair that was cut off had begun there is gone. */
export async function newJournalFolder(folder: string): Promise<string> {
  const path = join(folder, making);
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { mode: 0o700 });
  return path;
}

/** The new journal is complete and closed: from here on it will be the journal. */
export async function makeReady(folder: string): Promise<void> {
  await syncFolder(join(folder, making));
  await rename(join(folder, making), join(folder, ready));
  await syncFolder(folder);
}

/** Returns the folder in which the damaged files are. */
export async function swapIn(folder: string): Promise<string> {
  const from = join(folder, ready);
  const aside = join(folder, await readFile(join(from, asideFileName), 'utf8'));
  await makeFolder(aside, 0o700);
  const isFresh = await isThere(join(from, 'journal.sqlite'));
  for (const name of journalFiles) if (isFresh) await linked(join(folder, name), join(aside, name));
  await syncFolder(aside);
  // A WAL of the former database must never meet the new one.
  await rm(join(folder, 'journal.sqlite-wal'), { force: true });
  await rm(join(folder, 'journal.sqlite-shm'), { force: true });
  await syncFolder(folder);
  for (const name of ['journal.sqlite', 'journal.mark'])
    if (await isThere(join(from, name))) await rename(join(from, name), join(folder, name));
  await syncFolder(folder);
  for (const name of await readdir(from)) await rm(join(from, name));
  await rm(from, { recursive: true });
  await syncFolder(folder);
  return aside;
}

async function linked(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    // Absent, or linked by a swap that was cut off.
    if (!isSystemError(error) || (error.code !== 'ENOENT' && error.code !== 'EEXIST')) throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

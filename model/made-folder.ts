/**
 * Folders that may be there or not, wherever a user says they are.
 *
 * Instead of Node's recursive `mkdir`: that tries for ever where the system answers that what is above a folder is not
 * there although it is, as it does under `/proc`.
 */
import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { systemCode } from '../protocol/tls-identity.ts';

/**
 * Makes a folder, and those above it that are not there.
 *
 * @param mode of each that is made
 * @returns the topmost that was made, `undefined` where all were there
 * @throws the system's error, `EEXIST` where something else than a folder has the name
 */
export async function makeFolder(path: string, mode = 0o777): Promise<string | undefined> {
  const whole = resolve(path);
  if (await isMade(whole, mode, ['ENOENT'])) return whole;
  if (await isFolder(whole)) return undefined;
  const above = dirname(whole) === whole ? undefined : await makeFolder(dirname(whole), mode);
  // Another process may have made it meanwhile.
  return (await isMade(whole, mode, [])) ? (above ?? whole) : above;
}

/** False where it is there already, or for one of these reasons. */
async function isMade(path: string, mode: number, reasons: readonly string[]): Promise<boolean> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    if (reasons.includes(systemCode(error)) || (await isFolder(path))) return false;
    throw error;
  }
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/** Keys that tests of ssh need, made by ssh-keygen: ed25519, which takes no time. */
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.ts';

export interface OperatorKeys {
  /** Path of the private key. */
  readonly key: string;
  /** The same key under a passphrase. */
  readonly encryptedKey: { readonly path: string; readonly passphrase: string };
  /** A line for `authorized_keys`. */
  readonly publicKey: string;
}

export async function makeOperatorKeys(folder: string): Promise<OperatorKeys> {
  const key = join(folder, 'operator-key');
  const publicKey = await makeKey(key);
  const encryptedKey = { path: join(folder, 'encrypted-operator-key'), passphrase: 'open sesame' };
  await copyFile(key, encryptedKey.path);
  await copyFile(`${key}.pub`, `${encryptedKey.path}.pub`);
  await run(['ssh-keygen', '-q', '-p', '-P', '', '-N', encryptedKey.passphrase, '-f', encryptedKey.path]);
  return { key, encryptedKey, publicKey };
}

/** Makes a key without a passphrase at `path`; its public part as two words, type and key. */
export async function makeKey(path: string): Promise<string> {
  await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', path]);
  return (await readFile(`${path}.pub`, 'utf8')).trim();
}

/** What makes a host itself, written over the base image before its first boot: names, keys and who may do what. */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeKey } from './ssh-keys.ts';

/** How `ops` becomes root: without being asked, by its password, or not at all. */
export type Sudo = 'nopasswd' | 'password' | 'none';

const sudoers: Readonly<Record<Sudo, string | null>> = {
  nopasswd: 'ops ALL=(ALL:ALL) NOPASSWD: ALL\n',
  password: 'ops ALL=(ALL:ALL) ALL\n',
  none: null,
};

export interface HostFiles {
  /** The overlay's uppermost folder. */
  readonly folder: string;
  readonly name: string;
  /** May log in as `ops` and as root. */
  readonly publicKey: string;
  readonly sudo: Sudo;
}

/** Writes them; the host's public key as two words, type and key. */
export async function writeHostFiles({ folder, name, publicKey, sudo }: HostFiles): Promise<string> {
  // What lies here is what the host has, permissions too.
  for (const path of ['.', 'etc', 'etc/ssh', 'etc/ssh/authorized_keys.d', 'etc/sudoers.d']) {
    await mkdir(join(folder, path), { recursive: true });
    await chmod(join(folder, path), 0o755);
  }
  const write = async (path: string, text: string, mode = 0o644): Promise<void> => {
    await writeFile(join(folder, path), text);
    await chmod(join(folder, path), mode);
  };
  await write('etc/hostname', `${name}\n`);
  await write('etc/hosts', `127.0.0.1\tlocalhost\n127.0.1.1\t${name}\n::1\tlocalhost\n`);
  await write('etc/machine-id', `${randomBytes(16).toString('hex')}\n`);
  await write('etc/ssh/authorized_keys.d/ops', `${publicKey}\n`);
  await write('etc/ssh/authorized_keys.d/root', `${publicKey}\n`);
  const rule = sudoers[sudo];
  if (rule !== null) await write('etc/sudoers.d/ops', rule, 0o440);
  return makeKey(join(folder, 'etc/ssh/ssh_host_ed25519_key'));
}

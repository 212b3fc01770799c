/** A private key's file: what can be known of it without its passphrase. */
import { readFile, stat } from 'node:fs/promises';

import ssh2, { type ParsedKey } from 'ssh2';

import { P4Error } from '../../protocol/errors.ts';
import { systemCode } from '../../protocol/tls-identity.ts';
import { readIfThere } from '../durable-file.ts';

export interface PrivateKeyFile {
  readonly path: string;
  /** `null` where it can be known only with the passphrase. */
  readonly publicKey: ParsedKey | null;
  readonly lock:
    { readonly kind: 'open'; readonly key: ParsedKey } | { readonly kind: 'passphrase'; readonly text: string };
}

/** The result of trying a passphrase. */
export type Unlocking = { readonly kind: 'unlocked'; readonly key: ParsedKey } | { readonly kind: 'wrong' };

const openSshHeader = 'openssh-key-v1\0';

/**
 * `null` where there is no such file.
 * @throws SSH_KEY_UNUSABLE where others may read it, or it is no private key
 */
export async function readPrivateKey(path: string): Promise<PrivateKeyFile | null> {
  const text = await ownText(path);
  if (text === null) return null;
  if (isEncrypted(text)) {
    const publicKey = publicPart(text) ?? parsedOrNull((await readIfThere(`${path}.pub`)) ?? '');
    return { path, publicKey, lock: { kind: 'passphrase', text } };
  }
  const key = parsedOrNull(text);
  if (key?.isPrivateKey() !== true)
    throw unusable(path, 'it is no private key in a form that is read here (OpenSSH, PEM)');
  return { path, publicKey: key, lock: { kind: 'open', key } };
}

export function unlock(text: string, passphrase: string): Unlocking {
  const key = ssh2.utils.parseKey(text, passphrase);
  const one = Array.isArray(key) ? (key[0] as unknown) : key;
  return isKey(one) ? { kind: 'unlocked', key: one } : { kind: 'wrong' };
}

/** A public key as it goes over the wire; `null` for a kind that is not known. */
export const publicKeyOf = (blob: Buffer): ParsedKey | null => {
  const key: unknown = ssh2.utils.parseKey(blob);
  return isKey(key) ? key : null;
};

export const unusable = (path: string, why: string): P4Error => new P4Error('SSH_KEY_UNUSABLE', { path, why });

async function ownText(path: string): Promise<string | null> {
  try {
    const { mode, uid } = await stat(path);
    // As ssh does: a key of one's own that others can read is no longer a secret.
    if (uid === process.getuid?.() && (mode & 0o077) !== 0) throw unusable(path, 'others may read it: chmod 600');
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof P4Error) throw error;
    if (systemCode(error) === 'ENOENT') return null;
    throw unusable(path, `it cannot be read (${systemCode(error)})`);
  }
}

function isEncrypted(text: string): boolean {
  const container = openSshContainer(text);
  if (container !== null) return container.cipher !== 'none';
  return text.includes('Proc-Type: 4,ENCRYPTED') || /^Encryption: (?!none)/m.test(text);
}

function publicPart(text: string): ParsedKey | null {
  const container = openSshContainer(text);
  return container === null ? null : publicKeyOf(container.publicKey);
}

/** The open part of an OpenSSH private key: `PROTOCOL.key` in the sources of OpenSSH. */
function openSshContainer(text: string): { readonly cipher: string; readonly publicKey: Buffer } | null {
  const body = /-----BEGIN OPENSSH PRIVATE KEY-----([\s\S]+?)-----END/.exec(text)?.[1];
  if (body === undefined) return null;
  const bytes = Buffer.from(body, 'base64');
  if (!bytes.toString('latin1').startsWith(openSshHeader)) return null;
  let at = openSshHeader.length;
  const field = (): Buffer => {
    const length = at + 4 <= bytes.length ? bytes.readUInt32BE(at) : 0;
    const start = at + 4;
    at = start + length;
    return bytes.subarray(start, at);
  };
  const [cipher] = [field(), field(), field()];
  at += 4;
  return { cipher: cipher.toString('latin1'), publicKey: field() };
}

function parsedOrNull(text: string): ParsedKey | null {
  const key: unknown = ssh2.utils.parseKey(text);
  const one: unknown = Array.isArray(key) ? key[0] : key;
  return isKey(one) ? one : null;
}

const isKey = (value: unknown): value is ParsedKey =>
  typeof value === 'object' && value !== null && !(value instanceof Error) && 'getPublicSSH' in value;

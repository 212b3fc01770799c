/**
 * Files of known host keys, as sshd(8) describes them under SSH_KNOWN_HOSTS FILE FORMAT: names plain, with wildcards or
 * hashed, `[name]:port` for ports other than 22, and keys marked as revoked.
 *
 * Marked authorities of host certificates are passed over: hosts are known by their own keys here.
 */
import { createHash, createHmac } from 'node:crypto';

export interface KnownHostsEntry {
  readonly names: HostNames;
  readonly mark: 'none' | 'revoked';
  readonly key: HostKey;
  /** Where it stands, for people: `<path>:<line>`. */
  readonly place: string;
}

export type HostNames =
  | { readonly kind: 'patterns'; readonly patterns: readonly string[] }
  /** `HMAC-SHA1(salt, name)`: who reads the file does not learn which hosts its owner knows. */
  | { readonly kind: 'hashed'; readonly salt: Buffer; readonly hash: Buffer };

export interface HostKey {
  /** The key's type as it is written in files: `ssh-ed25519`, `ssh-rsa`, `ecdsa-sha2-nistp256`. */
  readonly type: string;
  /** The public key as it goes over the wire. */
  readonly blob: Buffer;
}

/** What is known of a host that has shown a key. */
export type HostKeyVerdict =
  | { readonly kind: 'known' }
  | { readonly kind: 'unknown' }
  /** Other keys are known of it, and it was asked for those first. */
  | { readonly kind: 'changed'; readonly known: readonly KnownHostsEntry[] }
  | { readonly kind: 'revoked'; readonly by: KnownHostsEntry };

/** Lines that are no entries are passed over, as ssh does. */
export function parseKnownHosts(text: string, path: string): readonly KnownHostsEntry[] {
  return text.split('\n').flatMap((line, index) => {
    const entry = parsedLine(line, `${path}:${index + 1}`);
    return entry === null ? [] : [entry];
  });
}

/** The name under which a host stands in the file. */
export const knownHostsName = (address: string, port: number): string => {
  const name = address.toLowerCase();
  return port === 22 ? name : `[${name}]:${port}`;
};

/** The line of a file for a key that was accepted; names are not hashed, so that people can find it. */
export const knownHostsLine = (name: string, { type, blob }: HostKey): string =>
  `${name} ${type} ${blob.toString('base64')}`;

/** As `ssh-keygen -l` prints it. */
export const fingerprint = (blob: Buffer): string =>
  `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;

/** The key of a blob; its type is what the blob begins with. */
export function hostKey(blob: Buffer): HostKey {
  const length = blob.length < 4 ? 0 : blob.readUInt32BE(0);
  return { type: blob.subarray(4, 4 + length).toString('latin1'), blob };
}

/** @param name as `knownHostsName` gives it */
export function verdictOf(entries: readonly KnownHostsEntry[], name: string, shown: HostKey): HostKeyVerdict {
  const ofHost = entriesOf(entries, name);
  const same = ofHost.filter(({ key }) => key.blob.equals(shown.blob));
  const by = same.find(({ mark }) => mark === 'revoked');
  if (by !== undefined) return { kind: 'revoked', by };
  if (same.length > 0) return { kind: 'known' };
  const known = ofHost.filter(({ mark }) => mark === 'none');
  return known.length === 0 ? { kind: 'unknown' } : { kind: 'changed', known };
}

/** Types of the keys that are known of a host, in the order of the files: it is asked for one of these first. */
export const knownTypes = (entries: readonly KnownHostsEntry[], name: string): readonly string[] => [
  ...new Set(
    entriesOf(entries, name)
      .filter(({ mark }) => mark === 'none')
      .map(({ key }) => key.type),
  ),
];

export const entriesOf = (entries: readonly KnownHostsEntry[], name: string): readonly KnownHostsEntry[] =>
  entries.filter(({ names }) => isNamed(names, name));

function parsedLine(line: string, place: string): KnownHostsEntry | null {
  const words = line.trim().split(/\s+/);
  const marker = words[0]?.startsWith('@') === true ? words.shift() : undefined;
  if (marker !== undefined && marker !== '@revoked') return null;
  const [names, type, encoded] = words;
  if (names === undefined || names === '' || names.startsWith('#') || type === undefined || encoded === undefined)
    return null;
  const key = hostKey(Buffer.from(encoded, 'base64'));
  const parsed = parsedNames(names);
  if (key.type !== type || parsed === null) return null;
  return { names: parsed, mark: marker === undefined ? 'none' : 'revoked', key, place };
}

function parsedNames(text: string): HostNames | null {
  if (!text.startsWith('|')) return { kind: 'patterns', patterns: text.toLowerCase().split(',') };
  const [, version, salt, hash] = text.split('|');
  if (version !== '1' || salt === undefined || hash === undefined) return null;
  return { kind: 'hashed', salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') };
}

function isNamed(names: HostNames, name: string): boolean {
  switch (names.kind) {
    case 'hashed':
      return createHmac('sha1', names.salt).update(name).digest().equals(names.hash);
    case 'patterns': {
      // A name that a negated pattern covers is not meant, whatever the others say.
      const covers = (pattern: string): boolean => wildcard(pattern).test(name);
      if (names.patterns.some((pattern) => pattern.startsWith('!') && covers(pattern.slice(1)))) return false;
      return names.patterns.some((pattern) => !pattern.startsWith('!') && covers(pattern));
    }
  }
}

const wildcard = (pattern: string): RegExp =>
  new RegExp(
    `^${pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
    's',
  );

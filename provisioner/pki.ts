/**
 * The fleet's keys on the operator's disk: its authority and the certificates it signed, in `pki/` of the state folder.
 *
 * Everyone in the fleet trusts this authority and no other. Its key never leaves the folder; key files are for their
 * owner only. What is asked for is made where it is missing, and made anew where it no longer does.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { TlsIdentity } from '../protocol/tls-identity.ts';
import { authorityFlaw, expiryOf, speaksFor, type Holder, type KeyPair } from './certificate.ts';
import { makeOwnerFolder, ownerFileMode, readIfThere, writeDurably } from './durable-file.ts';
import type { StateFolder } from './state-folder.ts';
import { whileLocked } from './state-lock.ts';

/** A holder's key and certificate, as texts and as files (absolute paths, as an agent's configuration has them). */
export interface Credentials {
  readonly identity: TlsIdentity;
  readonly paths: { readonly authority: string; readonly certificate: string; readonly key: string };
  readonly expires: Date;
  /** Made just now, where there was none or it no longer did. */
  readonly isNew: boolean;
}

/** Only where something is signed. */
const signing = () => import('./certificate-signing.ts');

const certificateMode = 0o644;
const dayMs = 86_400_000;

/**
 * The fleet's authority, made where there is none.
 *
 * @returns its certificate, PEM
 * @throws PKI_DAMAGED, PKI_EXPIRED, STATE_BUSY, STATE_UNREADABLE, STATE_UNWRITABLE
 */
export async function ensureAuthority(folder: StateFolder, now: Date): Promise<string> {
  return whileHeld(folder, async () => (await authorityOf(folder, now)).certificate);
}

/**
 * A holder's certificate: the one there is while it has the holder's names and is valid for `certificateRenewalDays`
 * more, else a new one. Makes the authority, too, where there is none.
 *
 * @throws as `ensureAuthority`
 */
export async function ensureCertificate(folder: StateFolder, holder: Holder, now: Date): Promise<Credentials> {
  return whileHeld(folder, async () => {
    const authority = await authorityOf(folder, now);
    const paths = pathsOf(folder, nameOf(holder));
    const found = await readPair(paths);
    const isGood = found !== null && isLasting(found, holder, { authority, now });
    const pair = isGood ? found : await (await signing()).createCertificate(authority, holder, now);
    if (!isGood) await writePair(paths, pair);
    return {
      identity: { authority: authority.certificate, ...pair, ...(await revokedIn(folder)) },
      paths: { authority: pathsOf(folder, authorityName).certificate, ...paths },
      expires: expiryOf(pair.certificate),
      isNew: !isGood,
    };
  });
}

/** The holder's certificate where there is one that will do for now; nothing is made or renewed. */
export async function standingCertificate(folder: StateFolder, holder: Holder, now: Date): Promise<TlsIdentity | null> {
  const authority = await readAuthority(pathsOf(folder, authorityName));
  if (authority === null || authorityFlaw(authority) !== null) return null;
  const found = await readPair(pathsOf(folder, nameOf(holder)));
  if (found === null || !isLasting(found, holder, { authority, now })) return null;
  return { authority: authority.certificate, ...found, ...(await revokedIn(folder)) };
}

/**
 * Revokes the certificates that a host has, as an agent's and as the monitor's, and forgets them: the host gets new ones
 * when it is deployed to again.
 *
 * @returns whether there was one
 * @throws as `ensureAuthority`
 */
export async function revokeCertificate(folder: StateFolder, host: HostName, now: Date): Promise<boolean> {
  return whileHeld(folder, async () => {
    const authority = await authorityOf(folder, now);
    let hadOne = false;
    for (const paths of hostPaths(folder, host)) {
      const certificate = await readIfThere(paths.certificate);
      if (certificate === null) continue;
      const former = await readIfThere(revokedPath(folder));
      const text = await (await signing()).revocationList(authority, { former, certificate }, now);
      await writeDurably({ path: revokedPath(folder), text, mode: certificateMode });
      await rm(paths.key, { force: true });
      await rm(paths.certificate, { force: true });
      hadOne = true;
    }
    return hadOne;
  });
}

/** Of all that a host may have. */
const hostPaths = (folder: StateFolder, host: HostName): readonly PairPaths[] =>
  hostRoles.map((role) => pathsOf(folder, `${role}-${host}`));

const hostRoles = ['agent', 'monitor'] as const;

/** Whether a host has a certificate of this fleet that is not revoked. @throws STATE_UNREADABLE */
export async function hasCertificate(folder: StateFolder, host: HostName): Promise<boolean> {
  const found = await Promise.all(hostPaths(folder, host).map(({ certificate }) => readIfThere(certificate)));
  return found.some((certificate) => certificate !== null);
}

const revokedPath = (folder: StateFolder): string => join(folder.pki, 'revoked.crl');

/** The list of revoked certificates, PEM; `null` where none was ever revoked. @throws STATE_UNREADABLE */
export const revokedList = (folder: StateFolder): Promise<string | null> => readIfThere(revokedPath(folder));

async function revokedIn(folder: StateFolder): Promise<{ readonly revoked?: string }> {
  const revoked = await revokedList(folder);
  return revoked === null ? {} : { revoked };
}

const authorityName = 'authority';

const nameOf = (holder: Holder): string => ('host' in holder ? `${holder.role}-${holder.host}` : holder.role);

interface PairPaths {
  readonly certificate: string;
  readonly key: string;
}

const pathsOf = (folder: StateFolder, name: string): PairPaths => ({
  certificate: join(folder.pki, `${name}.crt`),
  key: join(folder.pki, `${name}.key`),
});

async function whileHeld<Result>(folder: StateFolder, action: () => Promise<Result>): Promise<Result> {
  await makeOwnerFolder(folder.pki);
  return whileLocked(join(folder.pki, authorityName), action);
}

/**
 * The key file has the certificate, too, so that both are there or neither, whenever power is lost. The certificate's
 * own file is the copy that others read.
 */
async function authorityOf(folder: StateFolder, now: Date): Promise<KeyPair> {
  const paths = pathsOf(folder, authorityName);
  const copy = await readIfThere(paths.certificate);
  const pair = (await readAuthority(paths)) ?? (copy === null ? await makeAuthority(paths, now) : null);
  // A new one beside the hosts' old certificates would lock the operator out: never make it unasked.
  const flaw = pair === null ? 'the key is missing' : authorityFlaw(pair);
  if (pair === null || flaw !== null) throw new P4Error('PKI_DAMAGED', { ...paths, why: flaw ?? '' });
  const expires = expiryOf(pair.certificate);
  if (expires <= now) throw new P4Error('PKI_EXPIRED', { ...paths, expired: expires.toISOString() });
  if (copy !== pair.certificate)
    await writeDurably({ path: paths.certificate, text: pair.certificate, mode: certificateMode });
  return pair;
}

async function makeAuthority(paths: PairPaths, now: Date): Promise<KeyPair> {
  const pair = await (await signing()).createAuthority(now);
  await writeDurably({ path: paths.key, text: pair.key + pair.certificate, mode: ownerFileMode });
  return pair;
}

async function readAuthority(paths: PairPaths): Promise<KeyPair | null> {
  const text = await readIfThere(paths.key);
  if (text === null) return null;
  const start = text.indexOf('-----BEGIN CERTIFICATE-----');
  return start === -1 ? { key: text, certificate: '' } : { key: text.slice(0, start), certificate: text.slice(start) };
}

/** Good now, and not to be renewed yet; one that ends with its authority is not renewed for that. */
function isLasting(pair: KeyPair, holder: Holder, { authority, now }: { authority: KeyPair; now: Date }): boolean {
  const renewal = new Date(now.getTime() + limits.certificateRenewalDays * dayMs);
  const end = expiryOf(authority.certificate);
  return (
    speaksFor(pair, holder, { authority, at: now }) &&
    speaksFor(pair, holder, { authority, at: renewal < end ? renewal : end })
  );
}

/** `null` where either file is missing. */
async function readPair(paths: PairPaths): Promise<KeyPair | null> {
  const certificate = await readIfThere(paths.certificate);
  const key = await readIfThere(paths.key);
  return certificate === null || key === null ? null : { certificate, key };
}

/** Where power is lost between the two, they do not belong together, and are made anew when they are next asked for. */
async function writePair(paths: PairPaths, pair: KeyPair): Promise<void> {
  await writeDurably({ path: paths.key, text: pair.key, mode: ownerFileMode });
  await writeDurably({ path: paths.certificate, text: pair.certificate, mode: certificateMode });
}

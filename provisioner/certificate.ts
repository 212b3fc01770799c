/**
 * X.509 certificates, made and read: the fleet's authority and what it signs.
 *
 * ECDSA on P-256 throughout. A holder's role is the subject's organizational unit, its name the common name
 * (`protocol/peer-identity.ts` reads them).
 */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { canonicalIp, isIpAddress, isLoopback } from '../protocol/ip-address.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { Role } from '../protocol/peer-identity.ts';

/** PEM texts: an X.509 certificate and its PKCS #8 private key. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** Whom a certificate speaks for: an agent at its host's addresses, or a command. */
export type Holder =
  | { readonly role: 'agent'; readonly host: HostName; readonly addresses: readonly string[] }
  | { readonly role: Exclude<Role, 'agent'> };

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 86_400_000;

x509.cryptoProvider.set(webcrypto);

/** A new authority with a name of its own, so that two fleets' are told apart. */
export async function createAuthority(now: Date): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=p4 fleet ${randomBytes(4).toString('hex')}`,
    ...validity(now, limits.authorityDays),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      // It signs holders, and no further authorities.
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pemText(certificate), key: await keyText(keys.privateKey) };
}

/** A new key and a certificate for it, signed by an authority. */
export async function createCertificate(authority: KeyPair, holder: Holder, now: Date): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const issuer = new x509.X509Certificate(authority.certificate);
  const { notBefore, notAfter } = validity(now, limits.certificateDays);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: subjectOf(holder),
    issuer: issuer.subject,
    notBefore,
    notAfter: notAfter < issuer.notAfter ? notAfter : issuer.notAfter,
    publicKey: keys.publicKey,
    signingKey: await signingKey(authority.key),
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usagesOf(holder)),
      new x509.SubjectAlternativeNameExtension(alternativeNames(holder)),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { certificate: pemText(certificate), key: await keyText(keys.privateKey) };
}

/**
 * The authority's list of revoked certificates with one more, PEM (RFC 5280). It is valid as long as the authority: a list
 * that ended would stop the fleet.
 *
 * @param former the list so far, `null` for none
 */
export async function revocationList(
  authority: KeyPair,
  { former, certificate }: { readonly former: string | null; readonly certificate: string },
  now: Date,
): Promise<string> {
  const issuer = new x509.X509Certificate(authority.certificate);
  const entries = former === null ? [] : new x509.X509Crl(x509.PemConverter.decodeFirst(former)).entries;
  const { serialNumber } = new x509.X509Certificate(certificate);
  const list = await x509.X509CrlGenerator.create({
    issuer: issuer.subject,
    thisUpdate: new Date(now.getTime() - limits.certificateClockSkewMs),
    nextUpdate: issuer.notAfter,
    entries: [
      ...entries
        .filter((entry) => entry.serialNumber !== serialNumber)
        .map((entry) => ({ serialNumber: entry.serialNumber, revocationDate: entry.revocationDate })),
      { serialNumber, revocationDate: now },
    ],
    signingKey: await signingKey(authority.key),
    signingAlgorithm: algorithm,
  });
  // OpenSSL knows it by this name alone.
  return `${x509.PemConverter.encode(list.rawData, 'X509 CRL')}\n`;
}

/** Why a key pair is no authority, `null` for a good one. */
export function authorityFlaw({ certificate, key }: KeyPair): string | null {
  const read = readPair({ certificate, key });
  if (read === null) return 'key or certificate is not PEM';
  if (!read.certificate.checkPrivateKey(read.key)) return 'the key is not that of the certificate';
  return read.certificate.ca && read.certificate.checkIssued(read.certificate)
    ? null
    : 'the certificate is no authority';
}

/** Whether a key pair can go on speaking for a holder at a time: the authority's, with the holder's names, valid then. */
export function speaksFor(pair: KeyPair, holder: Holder, { authority, at }: { authority: KeyPair; at: Date }): boolean {
  const read = readPair(pair);
  if (read === null || !read.certificate.checkPrivateKey(read.key)) return false;
  const issuer = new X509Certificate(authority.certificate);
  if (!read.certificate.checkIssued(issuer) || !read.certificate.verify(issuer.publicKey)) return false;
  const isValid = new Date(read.certificate.validFrom) <= at && at <= new Date(read.certificate.validTo);
  return isValid && namesIn(pair.certificate) === namesText(holder);
}

/** When a PEM certificate ends. */
export const expiryOf = (certificate: string): Date => new Date(new X509Certificate(certificate).validTo);

const subjectOf = (holder: Holder): string => `CN=${commonName(holder)}, OU=${holder.role}`;
const commonName = (holder: Holder): string => (holder.role === 'agent' ? holder.host : holder.role);

/** Agents call each other, so they are servers and clients. */
const usagesOf = ({ role }: Holder): x509.ExtendedKeyUsage[] =>
  role === 'agent'
    ? [x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]
    : [x509.ExtendedKeyUsage.clientAuth];

/** The names a holder may be called by: its own, its addresses', and `localhost` where one of them is loopback. */
function alternativeNames(holder: Holder): x509.JsonGeneralName[] {
  const addresses = holder.role === 'agent' ? holder.addresses : [];
  const ips = addresses.filter(isIpAddress).map(canonicalIp);
  const names = addresses.filter((address) => !isIpAddress(address));
  const local = addresses.some(isLoopback) ? ['localhost'] : [];
  return [
    ...[...new Set([commonName(holder), ...names, ...local])].map((value) => ({ type: 'dns', value }) as const),
    ...[...new Set(ips)].map((value) => ({ type: 'ip', value }) as const),
  ];
}

/** All names of a holder as one text, to compare. */
const namesText = (holder: Holder): string =>
  [subjectOf(holder), ...alternativeNames(holder).map(({ type, value }) => `${type}:${value}`)].join('\n');

function namesIn(pem: string): string {
  const certificate = new x509.X509Certificate(pem);
  const names = certificate.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? [];
  const spelled = names.map(({ type, value }) => `${type}:${type === 'ip' ? canonicalIp(value) : value}`);
  return [certificate.subject, ...spelled].join('\n');
}

function validity(now: Date, days: number): { readonly notBefore: Date; readonly notAfter: Date } {
  // X.509 times are whole seconds.
  const start = Math.floor(now.getTime() / 1000) * 1000;
  return {
    notBefore: new Date(start - limits.certificateClockSkewMs),
    notAfter: new Date(start + days * dayMs),
  };
}

function readPair({ certificate, key }: KeyPair) {
  try {
    return { certificate: new X509Certificate(certificate), key: createPrivateKey(key) };
  } catch {
    return null;
  }
}

const signingKey = async (pem: string): Promise<webcrypto.CryptoKey> =>
  webcrypto.subtle.importKey(
    'pkcs8',
    createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' }),
    algorithm,
    false,
    ['sign'],
  );

const keyText = async (key: webcrypto.CryptoKey): Promise<string> =>
  `${x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), x509.PemConverter.PrivateKeyTag)}\n`;

const pemText = (certificate: x509.X509Certificate): string => `${certificate.toString('pem')}\n`;

/**
 * X.509 certificates, read: whom one speaks for, and until when. `certificate-signing.ts` makes them.
 *
 * A holder's role is the subject's organizational unit, its name the common name (`protocol/peer-identity.ts` reads them).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { canonicalIp, isIpAddress, isLoopback } from '../protocol/ip-address.ts';
import type { HostName } from '../protocol/ids.ts';
import type { Role } from '../protocol/peer-identity.ts';

/** PEM texts: an X.509 certificate and its PKCS #8 private key. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** Whom a certificate speaks for: an agent at its host's addresses, the Prometheus of a host, or a command. */
export type Holder =
  | { readonly role: 'agent'; readonly host: HostName; readonly addresses: readonly string[] }
  | { readonly role: 'monitor'; readonly host: HostName }
  | { readonly role: Exclude<Role, 'agent' | 'monitor'> };

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
  return isValid && namesIn(read.certificate) === namesText(holder);
}

/** When a PEM certificate ends. */
export const expiryOf = (certificate: string): Date => new Date(new X509Certificate(certificate).validTo);

export const subjectOf = (holder: Holder): string => `CN=${commonName(holder)}, OU=${holder.role}`;
const commonName = (holder: Holder): string => ('host' in holder ? holder.host : holder.role);

/** A name beside the subject's. */
export interface AlternativeName {
  readonly type: 'dns' | 'ip';
  readonly value: string;
}

/** The names a holder may be called by: its own, its addresses', and `localhost` where one of them is loopback. */
export function alternativeNames(holder: Holder): readonly AlternativeName[] {
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

/** As Node tells them: `DNS:ant, IP Address:FD00:0:0:0:0:0:0:1`. */
function namesIn({ subject, subjectAltName = '' }: X509Certificate): string {
  const names = subjectAltName.split(', ').map((name) => {
    const [kind = '', ...rest] = name.split(':');
    const value = rest.join(':');
    return kind === 'IP Address' ? `ip:${canonicalIp(value)}` : `${kind.toLowerCase()}:${value}`;
  });
  return [subject.split('\n').join(', '), ...names].join('\n');
}

function readPair({ certificate, key }: KeyPair) {
  try {
    return { certificate: new X509Certificate(certificate), key: createPrivateKey(key) };
  } catch {
    return null;
  }
}

/**
 * X.509 certificates, made: the fleet's authority and what it signs. ECDSA on P-256 throughout.
 *
 * Loaded only where one is made: what it is made with takes longer to load than most commands run.
 */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import { limits } from '../protocol/limits.ts';
import { alternativeNames, subjectOf, type Holder, type KeyPair } from './certificate.ts';

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
      new x509.SubjectAlternativeNameExtension([...alternativeNames(holder)]),
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

/** Agents call each other, so they are servers and clients. */
const usagesOf = ({ role }: Holder): x509.ExtendedKeyUsage[] =>
  role === 'agent'
    ? [x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]
    : [x509.ExtendedKeyUsage.clientAuth];

function validity(now: Date, days: number): { readonly notBefore: Date; readonly notAfter: Date } {
  // X.509 times are whole seconds.
  const start = Math.floor(now.getTime() / 1000) * 1000;
  return {
    notBefore: new Date(start - limits.certificateClockSkewMs),
    notAfter: new Date(start + days * dayMs),
  };
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

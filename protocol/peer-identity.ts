/**
 * Who a process is, as its certificate says: the role is the subject's one organizational unit, the name its common name.
 *
 * Certificates are trusted because the fleet's authority signed them; that is checked by TLS before anything here runs.
 */
import { X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';

import { P4Error } from './errors.ts';

export const roles = ['operator', 'agent', 'client', 'monitor'] as const;
export type Role = (typeof roles)[number];

export interface PeerIdentity {
  readonly role: Role;
  /** An agent's host name; for other roles what the operator called the certificate. */
  readonly name: string;
}

export const isRole = (text: string): text is Role => roles.some((role) => role === text);

/** @returns `null` for a certificate without exactly one common name and one known role */
export function identityOf(certificate: Pick<PeerCertificate, 'subject'>): PeerIdentity | null {
  // What a peer sent: a repeated attribute is a list, a missing one is absent, whatever the types say.
  const { CN: name, OU: unit }: { readonly CN?: unknown; readonly OU?: unknown } = certificate.subject;
  if (typeof name !== 'string' || typeof unit !== 'string' || !isRole(unit)) return null;
  return { role: unit, name };
}

/**
 * Who a PEM certificate speaks for.
 * @throws CERTIFICATE_UNUSABLE when it cannot be read or names nobody
 */
export function identityOfPem(certificate: string): PeerIdentity {
  const identity = identityOf(legacyObject(certificate));
  if (identity === null) throw new P4Error('CERTIFICATE_UNUSABLE', { why: 'no role and name in its subject' });
  return identity;
}

function legacyObject(certificate: string): PeerCertificate {
  try {
    return new X509Certificate(certificate).toLegacyObject();
  } catch (error) {
    throw new P4Error('CERTIFICATE_UNUSABLE', { why: 'not a PEM certificate' }, error);
  }
}

/** What a process shows and accepts on a TLS connection: mutual TLS 1.3 within the fleet, and nothing else. */
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';

import { P4Error } from './errors.ts';

/** PEM texts. */
export interface TlsIdentity {
  /** The fleet's authority: the only one whose certificates are accepted. */
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
  /** The authority's list of revoked certificates, where there is one: those are accepted no more. */
  readonly revoked?: string;
}

/** For both sides of a connection. */
export const tlsOptions = (identity: TlsIdentity): SecureContextOptions => ({
  ca: identity.authority,
  cert: identity.certificate,
  key: identity.key,
  ...(identity.revoked === undefined ? {} : { crl: identity.revoked }),
  minVersion: 'TLSv1.3',
});

/** @throws CERTIFICATE_UNUSABLE when the texts are no PEM, or key and certificate do not belong together */
export function secureContext(identity: TlsIdentity): SecureContext {
  try {
    return createSecureContext(tlsOptions(identity));
  } catch (error) {
    throw new P4Error('CERTIFICATE_UNUSABLE', { why: systemCode(error) }, error);
  }
}

/** The stable code of an error of Node or OpenSSL, such as `ECONNREFUSED`. */
export function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
}

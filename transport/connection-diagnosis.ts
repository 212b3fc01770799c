/**
 * Why a connection to an agent failed. gRPC reports one status and a text for all reasons; this connects once more, by
 * hand, where the stable codes of the system and of OpenSSL can be read.
 */
import { connect, type TLSSocket } from 'node:tls';

import { limits } from '../protocol/limits.ts';
import type { NetAddress } from '../protocol/net-address.ts';
import { systemCode, tlsOptions, type TlsIdentity } from '../protocol/tls-identity.ts';

export type Diagnosis =
  /** It answers now, and both sides accept each other's certificate. */
  | { readonly kind: 'answers' }
  | { readonly kind: 'unreachable'; readonly why: string }
  /** `by` is the side that does not accept the other's certificate. */
  | { readonly kind: 'certificate-refused'; readonly by: 'here' | 'there'; readonly why: string };

export interface DiagnosisOptions {
  readonly at: NetAddress;
  /** Dialled instead of the address, where it is given. */
  readonly socketPath?: string | null;
  readonly tls: TlsIdentity;
  /** The name asked for in the handshake. */
  readonly serverName: string;
}

export async function diagnose({ at, socketPath = null, tls, serverName }: DiagnosisOptions): Promise<Diagnosis> {
  const socket = connect({
    ...tlsOptions(tls),
    ...(socketPath === null ? { host: at.address, port: at.port } : { path: socketPath }),
    servername: serverName,
    ALPNProtocols: ['h2'],
    // The verdict is wanted as a code, about the chain alone; nothing is sent on this connection.
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
  });
  try {
    return await verdict(socket);
  } finally {
    socket.destroy();
  }
}

function verdict(socket: TLSSocket): Promise<Diagnosis> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve({ kind: 'unreachable', why: `no answer within ${limits.rpcDiagnosisMs} ms` });
    }, limits.rpcDiagnosisMs);
    socket.once('secureConnect', () => {
      if (socket.authorized) return;
      resolve({ kind: 'certificate-refused', by: 'here', why: refusalCode(socket.authorizationError) });
    });
    // With TLS 1.3 the other side's verdict comes after the handshake: its HTTP/2 settings, or an alert.
    socket.once('data', () => {
      resolve({ kind: 'answers' });
    });
    socket.once('error', (error) => {
      const why = systemCode(error);
      const isRefusal = isCertificateAlert(why) || socket.authorized;
      resolve(isRefusal ? { kind: 'certificate-refused', by: 'there', why } : { kind: 'unreachable', why });
    });
    socket.once('close', () => {
      clearTimeout(timer);
      // Node's server closes without an alert when it does not accept the chain.
      if (socket.authorized) resolve({ kind: 'certificate-refused', by: 'there', why: 'closed after the handshake' });
      else resolve({ kind: 'unreachable', why: 'closed during the handshake' });
    });
  });
}

/** OpenSSL's codes for the alerts of RFC 8446, section 6.2, that are about certificates. */
function isCertificateAlert(code: string): boolean {
  return code.startsWith('ERR_SSL_') && code.includes('ALERT') && /CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED/.test(code);
}

/** Node types a verification's code as an error; it is OpenSSL's name for it, such as `CERT_HAS_EXPIRED`. */
const refusalCode = (error: unknown): string => (typeof error === 'string' ? error : systemCode(error));

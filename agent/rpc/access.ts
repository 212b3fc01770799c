/** Which certificate roles may make which call; who calls is read from the certificate that TLS has verified. */
import type { PeerCertificate } from 'node:tls';

import { P4Error } from '../../protocol/errors.ts';
import { identityOf, type PeerIdentity, type Role } from '../../protocol/peer-identity.ts';
import type { MethodName, ServiceName } from '../../protocol/rpc-services.ts';

const operator: readonly Role[] = ['operator'];
const outer: readonly Role[] = ['client', 'operator'];

type AccessTable = {
  readonly [Service in ServiceName]: { readonly [Name in MethodName<Service>]: readonly Role[] };
};

export const access: AccessTable = {
  Agent: {
    Describe: operator,
    Load: operator,
    Link: operator,
    Probe: operator,
    Unload: operator,
    Status: ['operator', 'client', 'monitor'],
    ListSlices: operator,
    SliceState: operator,
    ReceiveSlice: operator,
    RemoveSlices: operator,
    DescribeModel: operator,
    CutSlice: operator,
  },
  Outer: {
    OpenSession: outer,
    Submit: outer,
    Gather: outer,
    Cancel: outer,
    CloseSession: outer,
    Settle: outer,
  },
};

export const ringAccess: readonly Role[] = ['agent'];

/** The part of a gRPC call that says who makes it. */
export interface PeerOfCall {
  getAuthContext(): { readonly sslPeerCertificate?: PeerCertificate };
}

/** @throws ROLE_FORBIDDEN when the peer's certificate has none of the `allowed` roles */
export function identify(call: PeerOfCall, allowed: readonly Role[], method: string): PeerIdentity {
  const certificate = call.getAuthContext().sslPeerCertificate;
  const identity = certificate === undefined ? null : identityOf(certificate);
  if (identity !== null && allowed.includes(identity.role)) return identity;
  throw new P4Error('ROLE_FORBIDDEN', { method, role: identity?.role ?? 'none', allowed });
}

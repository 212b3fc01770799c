/** Taking an address for a server of this agent. */
import type { Server } from 'node:net';

import { P4Error } from '../protocol/errors.ts';
import { addressText, type NetAddress } from '../protocol/net-address.ts';
import { systemCode } from '../protocol/tls-identity.ts';

/**
 * Listens; an IPv6 address takes no IPv4 with it.
 *
 * @param at port 0 for any that is free
 * @returns the port
 * @throws ADDRESS_IN_USE, ADDRESS_UNAVAILABLE
 */
export function boundPort(server: Server, at: NetAddress): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const why = systemCode(error);
      const facts = { address: addressText(at) };
      if (why === 'EADDRINUSE') reject(new P4Error('ADDRESS_IN_USE', facts, error));
      else reject(new P4Error('ADDRESS_UNAVAILABLE', { ...facts, why }, error));
    });
    server.listen({ host: at.address, port: at.port, ipv6Only: true }, () => {
      const bound = server.address();
      resolve(typeof bound === 'object' && bound !== null ? bound.port : at.port);
    });
  });
}

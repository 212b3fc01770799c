/**
 * One connection to each neighbouring agent, shared by the ring edges that lead there.
 *
 * Who answers is checked by certificate (A3): it must be the agent of the expected host, and not this one itself.
 */
import { P4Error } from '../../protocol/errors.ts';
import { addressText } from '../../protocol/net-address.ts';
import { identityOfPem, type PeerIdentity } from '../../protocol/peer-identity.ts';
import { PeerChannel, type Peer } from '../../transport/peer-channel.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';

export interface ChannelLease {
  readonly channel: PeerChannel;
  /**
   * To be called once. The connection closes with its last lease; after a failure it takes no new ones.
   */
  release(why: 'unused' | 'failed'): void;
}

interface SharedChannel {
  readonly channel: PeerChannel;
  leases: number;
}

export class PeerChannels {
  readonly #tls: TlsIdentity;
  readonly #self: PeerIdentity;
  /** By host and address. */
  readonly #shared = new Map<string, SharedChannel>();

  /** @throws CERTIFICATE_UNUSABLE */
  constructor(tls: TlsIdentity) {
    this.#tls = tls;
    this.#self = identityOfPem(tls.certificate);
  }

  lease(peer: Peer): ChannelLease {
    const key = `${peer.host} ${addressText(peer)}`;
    const shared = this.#shared.get(key) ?? { channel: this.#connect(peer), leases: 0 };
    this.#shared.set(key, shared);
    shared.leases++;
    return {
      channel: shared.channel,
      release: (why) => {
        shared.leases--;
        if ((why === 'failed' || shared.leases === 0) && this.#shared.get(key) === shared) this.#shared.delete(key);
        if (shared.leases === 0) shared.channel.close();
      },
    };
  }

  #connect(peer: Peer): PeerChannel {
    const refusal = (found: PeerIdentity | null): P4Error | null => this.#refusal(peer, found);
    return new PeerChannel({ peer, tls: this.#tls, refusal });
  }

  #refusal(peer: Peer, found: PeerIdentity | null): P4Error | null {
    const facts = { address: addressText(peer), expected: peer.host };
    if (found?.role !== 'agent')
      return new P4Error('LINK_WRONG_PEER', { ...facts, found: found === null ? 'nobody' : found.role });
    if (found.name === this.#self.name) return new P4Error('LINK_TO_SELF', facts);
    if (found.name !== peer.host) return new P4Error('LINK_WRONG_PEER', { ...facts, found: found.name });
    return null;
  }
}

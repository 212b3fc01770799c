/** The operator's connections to the fleet's agents, opened when they are first used. */
import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { AgentDescription } from '../protocol/messages.ts';
import { addressText, type NetAddress } from '../protocol/net-address.ts';
import type { TlsIdentity } from '../protocol/tls-identity.ts';
import { AgentClient } from './agent-client.ts';
import { directWays, type AgentWays } from './fleet-ways.ts';
import { knownFleet, operatorAddressOf, type Fleet, type FleetHost } from './fleet-file.ts';
import { dialledAddress, ringAddresses } from './network/fleet-network.ts';
import { ensureCertificate } from './pki.ts';
import type { StateFolder } from './state-folder.ts';

export class FleetConnection {
  readonly #fleet: Fleet;
  readonly #hosts: ReadonlyMap<HostName, FleetHost>;
  readonly #tls: TlsIdentity;
  readonly #ways: AgentWays;
  readonly #clients = new Map<HostName, AgentClient>();

  private constructor(fleet: Fleet, tls: TlsIdentity, ways: AgentWays) {
    this.#fleet = fleet;
    this.#hosts = new Map(fleet.hosts.map((host) => [host.name, host]));
    this.#tls = tls;
    this.#ways = ways;
  }

  /**
   * @param ways closed with the connection; absent: agents are dialled at their addresses
   * @throws FLEET_FILE_MISSING and others of the state folder
   */
  static async open(state: StateFolder, ways: AgentWays = directWays): Promise<FleetConnection> {
    const fleet = await knownFleet(state);
    const { identity } = await ensureCertificate(state, { role: 'operator' }, new Date());
    return new FleetConnection(fleet, identity, ways);
  }

  get hosts(): readonly HostName[] {
    return [...this.#hosts.keys()];
  }

  /** Where the agent of `dialler` reaches those of a ring's hosts: over the fastest network that they share (A1). */
  ringAddresses(hosts: readonly HostName[], dialler: HostName): ReadonlyMap<HostName, NetAddress> {
    const addresses = ringAddresses(this.#fleet, hosts);
    return new Map(
      [...addresses].map(([to, address]) => [
        to,
        { address: dialledAddress(this.#fleet, { from: dialler, to }, address), port: this.address(to).port },
      ]),
    );
  }

  /** Where a host of the fleet is advertised. */
  address(host: HostName): FleetHost {
    return present(this.#hosts.get(host), 'the host is one of the fleet');
  }

  addressText(host: HostName): string {
    return addressText(this.address(host));
  }

  isKnown(host: HostName): boolean {
    return this.#hosts.has(host);
  }

  /** @throws HOST_UNKNOWN for a host that has left the fleet since its ring was loaded */
  client(host: HostName): AgentClient {
    const known = this.#clients.get(host);
    if (known !== undefined) return known;
    const found = this.#hosts.get(host);
    if (found === undefined) throw new P4Error('HOST_UNKNOWN', { host, known: this.hosts });
    const { certificateName, port } = found;
    const way = this.#ways.to(found);
    const address = operatorAddressOf(found, way !== null);
    const client = AgentClient.connect({ host: certificateName, address, port, tls: this.#tls, way });
    this.#clients.set(host, client);
    return client;
  }

  async describe(host: HostName, signal: AbortSignal): Promise<AgentDescription> {
    return this.client(host).call(['Agent', 'Describe'], {}, { deadlineMs: limits.answerMs, signal });
  }

  /** Calls under way fail. */
  async close(): Promise<void> {
    for (const client of this.#clients.values()) client.close();
    await this.#ways.close();
  }
}

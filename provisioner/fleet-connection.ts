/** The operator's connections to the fleet's agents, opened when they are first used. */
import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { AgentDescription } from '../protocol/messages.ts';
import { addressText } from '../protocol/net-address.ts';
import type { TlsIdentity } from '../protocol/tls-identity.ts';
import { AgentClient } from './agent-client.ts';
import { knownFleet, type FleetHost } from './fleet-file.ts';
import { ensureCertificate } from './pki.ts';
import type { StateFolder } from './state-folder.ts';

export class FleetConnection {
  readonly #hosts: ReadonlyMap<HostName, FleetHost>;
  readonly #tls: TlsIdentity;
  readonly #clients = new Map<HostName, AgentClient>();

  private constructor(hosts: readonly FleetHost[], tls: TlsIdentity) {
    this.#hosts = new Map(hosts.map((host) => [host.name, host]));
    this.#tls = tls;
  }

  /** @throws FLEET_FILE_MISSING and others of the state folder */
  static async open(state: StateFolder): Promise<FleetConnection> {
    const hosts = await knownFleet(state);
    const { identity } = await ensureCertificate(state, { role: 'operator' }, new Date());
    return new FleetConnection(hosts, identity);
  }

  get hosts(): readonly HostName[] {
    return [...this.#hosts.keys()];
  }

  /** Where a host of the fleet is reached. */
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
    const { certificateName, address, port } = found;
    const client = AgentClient.connect({ host: certificateName, address, port, tls: this.#tls });
    this.#clients.set(host, client);
    return client;
  }

  async describe(host: HostName, signal: AbortSignal): Promise<AgentDescription> {
    return this.client(host).call(['Agent', 'Describe'], {}, { deadlineMs: limits.answerMs, signal });
  }

  /** Calls under way fail. */
  close(): void {
    for (const client of this.#clients.values()) client.close();
  }
}

/**
 * The networks of a fleet: one bridge each, all in one namespace, with a cable to each host and to the operator. Speed and
 * frame size are kept on the switch's side, where no host sees or changes them.
 */
import { existsSync } from 'node:fs';
import { eventually } from '../fixture/eventually.ts';
import { run } from './command.ts';
import { NetworkNamespace } from './namespace.ts';
import type { HostLink, LinkAddress, NetworkPlan, NetworkSpec } from './network-plan.ts';

/** Docker's own choice for its bridge, the same on every machine that runs it. */
export const trapAddress = '172.17.0.1';

export class Switchboard {
  readonly #networks: readonly NetworkPlan[];
  readonly #namespace: NetworkNamespace;
  #trapCount = 0;

  private constructor(networks: readonly NetworkPlan[], namespace: NetworkNamespace) {
    this.#networks = networks;
    this.#namespace = namespace;
  }

  /** Makes the bridges, and the operator's interfaces in the namespace of this process. */
  static async make(networks: readonly NetworkPlan[]): Promise<Switchboard> {
    const switchboard = new Switchboard(networks, await NetworkNamespace.make());
    try {
      await switchboard.#makeBridges();
      for (const { spec, bridge, operator } of networks) {
        if (operator === null) continue;
        const { device, link } = operator;
        await switchboard.#plug({ spec, bridge, link, device, pid: process.pid });
        await run(['ip', '-batch', '-'], { input: addressLines(device, link.addresses).join('\n') });
      }
      return switchboard;
    } catch (error) {
      await switchboard.remove();
      throw error;
    }
  }

  /** Plugs a host's namespace into its networks. */
  async connect(host: string, namespace: NetworkNamespace): Promise<void> {
    for (const { spec, bridge, links } of this.#networks) {
      const link = links.get(host);
      if (link === undefined) continue;
      await this.#plug({ spec, bridge, link, device: spec.name, pid: namespace.pid });
      await namespace.ip(addressLines(spec.name, link.addresses));
    }
  }

  /** Gives a host the bridge of a Docker engine that has one container: up, with an address that every host has. */
  async layTrap(namespace: NetworkNamespace): Promise<void> {
    const container = `trap${this.#trapCount}`;
    this.#trapCount += 1;
    await this.#namespace.ip([
      `link add name ${container} type veth peer name vethd0c4e2 netns ${namespace.pid}`,
      `link set dev ${container} up`,
    ]);
    await namespace.ip([
      'link add name docker0 type bridge',
      'link set dev vethd0c4e2 master docker0 up',
      `addr add ${trapAddress}/16 brd 172.17.255.255 dev docker0`,
      'link set dev docker0 up',
    ]);
  }

  /** Pulls a host's cable out, or plugs it in again: the host sees its interface without carrier. */
  async setLink(link: HostLink, state: 'up' | 'down'): Promise<void> {
    await this.#namespace.ip([`link set dev ${link.port} ${state}`]);
  }

  async remove(): Promise<void> {
    await this.#namespace.remove();
    const devices = this.#networks.flatMap(({ operator }) => (operator === null ? [] : [operator.device]));
    // The kernel takes a namespace down some time after its last process.
    const areGone = (): boolean => devices.every((device) => !existsSync(`/sys/class/net/${device}`));
    await eventually(areGone, { what: `${devices.join(', ')} went with the other end` });
  }

  async #makeBridges(): Promise<void> {
    await this.#namespace.ip(
      this.#networks.flatMap(({ spec, bridge }) => [
        `link add name ${bridge} mtu ${carriedMtu(spec)} type bridge forward_delay 0 mcast_snooping 0`,
        `link set dev ${bridge} addrgenmode none`,
        `link set dev ${bridge} up`,
      ]),
    );
  }

  async #plug(cable: {
    readonly spec: NetworkSpec;
    readonly bridge: string;
    readonly link: HostLink;
    /** Name of the far end, in the network namespace of process `pid`. */
    readonly device: string;
    readonly pid: number;
  }): Promise<void> {
    const { spec, bridge, link, device, pid } = cable;
    const far = `peer name ${device} mtu ${spec.mtu ?? 1500} netns ${pid}`;
    await this.#namespace.ip([
      `link add name ${link.port} mtu ${carriedMtu(spec)} type veth ${far}`,
      `link set dev ${link.port} addrgenmode none`,
      `link set dev ${link.port} master ${bridge} up`,
    ]);
    const inFarNamespace = ['nsenter', `--target=${pid}`, '--net'] as const;
    if (carriedMtu(spec) !== (spec.mtu ?? 1500)) {
      // Without this the kernel hands whole segments over that a wire would have cut to frames.
      await run([...inFarNamespace, 'ip', 'link', 'set', 'dev', device, 'gso_max_segs', '1']);
    }
    if (spec.rateMbit !== undefined) {
      const shape = ['root', 'tbf', 'rate', `${spec.rateMbit}mbit`, 'burst', '64kb', 'latency', '50ms'];
      await this.#namespace.run(['tc', 'qdisc', 'add', 'dev', link.port, ...shape]);
    }
  }
}

const carriedMtu = (spec: NetworkSpec): number => spec.carriedMtu ?? spec.mtu ?? 1500;

function addressLines(device: string, addresses: readonly LinkAddress[]): readonly string[] {
  return [
    ...addresses.map(({ address, prefixLength, family }) =>
      family === 'ipv4'
        ? `addr add ${address}/${prefixLength} brd + dev ${device}`
        : `addr add ${address}/${prefixLength} dev ${device} nodad`,
    ),
    `link set dev ${device} up`,
  ];
}

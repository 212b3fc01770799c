/**
 * Hosts as network namespaces of this machine, joined by bridges in a namespace of their own: as much network as a probe
 * can tell from machines. Names end in random digits; `remove` takes everything away, also what a failed test left.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { hostName, type HostName } from '../../protocol/ids.ts';
import type { ProbedHost } from '../../provisioner/network/network-probe.ts';
import { startLocalProbe } from '../../provisioner/network/local-probe.ts';

export interface LabLink {
  /** Bits a second that the host sends at most, as `tc` writes them: `50mbit`; `null`: as fast as it goes. */
  readonly rate: string | null;
  /** With its prefix length; IPv6 too. */
  readonly addresses: readonly string[];
}

export class Lab {
  readonly #suffix = randomBytes(3).toString('hex');
  readonly #spaces: string[] = [];
  /** Where the bridges are. */
  readonly #middle: string;

  constructor() {
    this.#middle = this.#space('middle');
  }

  /** A host with nothing but loopback. */
  addHost(name: string): void {
    this.#space(name);
  }

  /** A network; without a fault it carries whatever its hosts send. */
  addNetwork(name: string): void {
    this.inMiddle('ip', 'link', 'add', name, 'type', 'bridge', 'forward_delay', '0');
    this.inMiddle('ip', 'link', 'set', name, 'up');
  }

  /** Joins a host to a network by an interface that is called as the network. */
  join(host: string, network: string, { rate, addresses }: LabLink): void {
    const port = `${network}-${host}`;
    const space = this.#nameOf(host);
    this.inMiddle('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', network, 'netns', space);
    this.inMiddle('ip', 'link', 'set', port, 'master', network, 'up');
    this.inHost(host, 'ip', 'link', 'set', network, 'up');
    for (const address of addresses) this.addAddress(host, network, address);
    if (rate !== null)
      this.inHost(
        host,
        'tc',
        'qdisc',
        'add',
        'dev',
        network,
        'root',
        'tbf',
        'rate',
        rate,
        'burst',
        '32k',
        'latency',
        '50ms',
      );
  }

  addAddress(host: string, device: string, address: string): void {
    const quick = address.includes(':') ? ['nodad'] : [];
    this.inHost(host, 'ip', 'addr', 'add', address, 'dev', device, ...quick);
  }

  /** A bridge of the host's own with the address that it has on every host where the same program made it. */
  addTrap(host: string): void {
    this.inHost(host, 'ip', 'link', 'add', 'docker0', 'type', 'bridge');
    this.inHost(host, 'ip', 'link', 'add', 'pod', 'type', 'veth', 'peer', 'name', 'pod-end');
    this.inHost(host, 'ip', 'link', 'set', 'pod', 'master', 'docker0', 'up');
    this.inHost(host, 'ip', 'link', 'set', 'pod-end', 'up');
    this.inHost(host, 'ip', 'link', 'set', 'docker0', 'up');
    this.addAddress(host, 'docker0', '172.17.0.1/16');
  }

  /**
   * Large packets towards a host vanish on the way, and nobody is told: a bridge sends no ICMP. The sender must cut its
   * packets itself for that, as a network card would.
   */
  loseLargePackets(network: string, hosts: readonly string[]): void {
    for (const host of hosts) {
      this.inHost(host, 'ip', 'link', 'set', network, 'gso_max_segs', '1');
      this.inMiddle('ip', 'link', 'set', `${network}-${host}`, 'mtu', '900');
      // The bridge itself would take the least MTU of its ports, which only its own packets feel.
    }
  }

  /** The host as a probe program can be started on it. */
  probed(host: string): ProbedHost {
    const wrapper = ['ip', 'netns', 'exec', this.#nameOf(host)];
    return { host: hostName(host), start: () => startLocalProbe(wrapper) };
  }

  inHost(host: string, ...words: readonly string[]): string {
    return run(['ip', 'netns', 'exec', this.#nameOf(host), ...words]);
  }

  inMiddle(...words: readonly string[]): string {
    return run(['ip', 'netns', 'exec', this.#middle, ...words]);
  }

  get hosts(): readonly HostName[] {
    return this.#spaces.filter((space) => space !== this.#middle).map((space) => hostName(space.split('.')[1] ?? ''));
  }

  /** With the spaces go their interfaces, addresses and queues. */
  remove(): void {
    for (const space of this.#spaces.splice(0)) run(['ip', 'netns', 'del', space]);
  }

  #nameOf(host: string): string {
    return `p4-${this.#suffix}.${host}`;
  }

  #space(name: string): string {
    const space = this.#nameOf(name);
    run(['ip', 'netns', 'add', space]);
    this.#spaces.push(space);
    run(['ip', '-n', space, 'link', 'set', 'lo', 'up']);
    return space;
  }
}

function run(words: readonly string[]): string {
  const [command = '', ...rest] = words;
  return execFileSync(command, rest, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

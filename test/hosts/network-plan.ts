/**
 * What a fleet's networks are called and which addresses its hosts get: decided before anything is made.
 *
 * IPv4 addresses are of 198.18.0.0/15 (RFC 2544, for tests of network devices), IPv6 ones of a random ULA prefix
 * (RFC 4193): neither is anybody's outside. Hosts have no way out of their networks.
 */
import assert from 'node:assert/strict';

export type Family = 'ipv4' | 'ipv6';

export interface NetworkSpec {
  /** Also the name of the interface in every host: at most 15 characters. */
  readonly name: string;
  /** IPv4 if absent. With none, hosts have nothing but the link-local addresses that every link has. */
  readonly families?: readonly Family[];
  /** Megabits per second that each host can send, and receive; unlimited if absent. */
  readonly rateMbit?: number;
  /** What interfaces of hosts are set to; 1500 if absent. */
  readonly mtu?: number;
  /** What the network really carries, when that is less: larger frames vanish without a word. */
  readonly carriedMtu?: number;
  /** Whether the process that runs the tests has an address in it, to reach hosts by ssh. */
  readonly hasOperator?: boolean;
}

export interface HostLink {
  readonly network: string;
  /** The switch's end of the cable. */
  readonly port: string;
  readonly addresses: readonly LinkAddress[];
}

export interface LinkAddress {
  readonly family: Family;
  readonly address: string;
  readonly prefixLength: number;
}

export interface NetworkPlan {
  readonly spec: NetworkSpec;
  readonly bridge: string;
  /** The operator's interface and addresses; null where it has none. */
  readonly operator: { readonly device: string; readonly link: HostLink } | null;
  /** By host. */
  readonly links: ReadonlyMap<string, HostLink>;
}

export interface FleetNetworks {
  /** 6 hexadecimal digits; interfaces of the operator are named after it. */
  readonly id: string;
  /** Each host with the networks it is in. */
  readonly hosts: readonly { readonly name: string; readonly networks: readonly string[] }[];
  readonly networks: readonly NetworkSpec[];
  /** Subnets of 198.18.0.0/15 that the operator's machine has, by number: 0 is 198.18.0.0/24, 256 is 198.19.0.0/24. */
  readonly taken: ReadonlySet<number>;
}

const subnetCount = 512;
/** Host numbers below are the operator's. */
const firstHost = 11;

export function planNetworks({ id, hosts, networks, taken }: FleetNetworks): readonly NetworkPlan[] {
  const start = Number.parseInt(id, 16);
  const free = Array.from({ length: subnetCount }, (_, step) => (start + step) % subnetCount).filter(
    (subnet) => !taken.has(subnet),
  );
  return networks.map((spec, index) => {
    assert.match(spec.name, /^[a-z][a-z0-9-]{0,14}$/, 'a name of a network names interfaces');
    const subnet = free[index];
    assert.ok(subnet !== undefined, 'a subnet of 198.18.0.0/15 is free');
    const linkOf = (owner: string, number: number): HostLink => ({
      network: spec.name,
      port: `n${index}${owner}`,
      addresses: (spec.families ?? ['ipv4']).map((family) => addressOf({ family, id, subnet, number })),
    });
    const links = hosts.flatMap(({ name, networks: joined }, host) =>
      joined.includes(spec.name) ? [[name, linkOf(`h${host}`, firstHost + host)] as const] : [],
    );
    const operator = { device: `p4${id}n${index}`, link: linkOf('op', 1) };
    return {
      spec,
      bridge: `n${index}`,
      operator: spec.hasOperator === true ? operator : null,
      links: new Map(links),
    };
  });
}

function addressOf(options: {
  readonly family: Family;
  readonly id: string;
  readonly subnet: number;
  readonly number: number;
}): LinkAddress {
  const { family, id, subnet, number } = options;
  switch (family) {
    case 'ipv4':
      return { family, address: `198.${18 + Math.floor(subnet / 256)}.${subnet % 256}.${number}`, prefixLength: 24 };
    case 'ipv6': {
      // The parts as an address is written: without leading zeros.
      const parts = [`fd${id.slice(0, 2)}`, id.slice(2), (subnet + 1).toString(16)];
      const prefix = parts.map((part) => Number.parseInt(part, 16).toString(16)).join(':');
      return { family, address: `${prefix}::${number.toString(16)}`, prefixLength: 48 };
    }
  }
}

/** Subnets among addresses that a machine has, for `taken`. */
export function takenSubnets(addresses: readonly string[]): ReadonlySet<number> {
  return new Set(
    addresses.flatMap((address) => {
      const [, second, third] = /^198\.(18|19)\.(\d+)\.\d+$/.exec(address) ?? [];
      return second === undefined || third === undefined ? [] : [(Number(second) - 18) * 256 + Number(third)];
    }),
  );
}

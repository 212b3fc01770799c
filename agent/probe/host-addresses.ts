/** A host's addresses put together from what Node, the program `ip` (where it is there) and sysfs say. No I/O. */
import { canonicalIp, isLoopback } from '../../protocol/ip-address.ts';
import { isRecord, itemsOf, memberOf } from '../../protocol/plain-value.ts';
import type { AddressFlag, AddressScope, HostAddress } from '../../protocol/probe-messages.ts';

/** One address as `os.networkInterfaces()` tells it. */
export interface InterfaceAddress {
  readonly address: string;
  /** With its prefix length; `null` where the mask is none. */
  readonly cidr: string | null;
}

export interface LinkFacts {
  /** In bytes; 0 where it is not known. */
  readonly mtu: number;
  /** In Mb/s; 0 where it is not known. */
  readonly linkMbps: number;
}

export interface AddressSources {
  /** By interface; those that are up. */
  readonly interfaces: Readonly<Record<string, readonly InterfaceAddress[] | undefined>>;
  /** Parsed output of `ip -j addr`, `null` where there is no such program. */
  readonly details: unknown;
  readonly link: (name: string) => LinkFacts;
}

export type QuietAddress = Omit<HostAddress, 'listener'>;

/** In the kernel's order; each address of an interface once. */
export function hostAddresses({ interfaces, details, link }: AddressSources): readonly QuietAddress[] {
  const detailed = itemsOf(details).flatMap((entry) => detailedAddresses(entry, link));
  const known = new Set(detailed.map(keyOf));
  const plain = Object.entries(interfaces).flatMap(([name, addresses]) =>
    (addresses ?? []).map((address) => plainAddress(name, address, link(name))),
  );
  return [...detailed, ...plain.filter((address) => !known.has(keyOf(address)))];
}

/** Interfaces whose facts are wanted. */
export const interfaceNames = ({ interfaces, details }: Omit<AddressSources, 'link'>): readonly string[] => [
  ...new Set([
    ...Object.keys(interfaces),
    ...itemsOf(details).flatMap((entry) => {
      const name = memberOf(entry, 'ifname');
      return typeof name === 'string' ? [name] : [];
    }),
  ]),
];

const keyOf = ({ address, interface: name }: QuietAddress): string => `${canonicalIp(address)} ${name}`;

function plainAddress(name: string, { address, cidr }: InterfaceAddress, facts: LinkFacts): QuietAddress {
  const prefix = Number(cidr?.split('/')[1] ?? NaN);
  return {
    address,
    prefixLength: Number.isInteger(prefix) ? prefix : address.includes(':') ? 128 : 32,
    interface: name,
    scope: scopeOf(address),
    flags: [],
    // Node leaves out the others.
    isUp: true,
    ...facts,
  };
}

/** One entry of `ip -j addr`: a link with its addresses. */
function detailedAddresses(entry: unknown, link: AddressSources['link']): readonly QuietAddress[] {
  const name = memberOf(entry, 'ifname');
  if (typeof name !== 'string') return [];
  const linkFlags = itemsOf(memberOf(entry, 'flags'));
  const isUp = linkFlags.includes('UP') && linkFlags.includes('LOWER_UP');
  const facts = link(name);
  const mtu = memberOf(entry, 'mtu');
  return itemsOf(memberOf(entry, 'addr_info')).flatMap((one): readonly QuietAddress[] => {
    const [address, prefixLength] = [memberOf(one, 'local'), memberOf(one, 'prefixlen')];
    if (typeof address !== 'string' || typeof prefixLength !== 'number') return [];
    return [
      {
        ...{ address, prefixLength, interface: name, scope: scopeOf(address), flags: flagsOf(one), isUp },
        ...{ ...facts, mtu: typeof mtu === 'number' ? mtu : facts.mtu },
      },
    ];
  });
}

function flagsOf(address: unknown): readonly AddressFlag[] {
  const isSaid = (key: string): boolean => isRecord(address) && address[key] === true;
  const said: readonly (AddressFlag | null)[] = [
    isSaid('deprecated') || memberOf(address, 'preferred_life_time') === 0 ? 'deprecated' : null,
    isSaid('temporary') ? 'temporary' : null,
    isSaid('tentative') || isSaid('dadfailed') ? 'tentative' : null,
    // IPv6 says `secondary` for temporary addresses.
    isSaid('secondary') && memberOf(address, 'family') === 'inet' ? 'secondary' : null,
    isSaid('dynamic') ? 'dynamic' : null,
  ];
  return said.filter((flag) => flag !== null);
}

/** By the address itself: what an operator typed as its scope does not change where it leads. */
function scopeOf(address: string): AddressScope {
  if (isLoopback(address)) return 'host';
  return /^fe[89ab][0-9a-f]:/i.test(address) || address.startsWith('169.254.') ? 'link' : 'global';
}

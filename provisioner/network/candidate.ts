/** What stands against an address: by itself, and by how the other hosts fared with it. Pure. */
import type { HostName } from '../../protocol/ids.ts';
import { canonicalIp, isLoopback } from '../../protocol/ip-address.ts';
import type { HostAddress } from '../../protocol/probe-messages.ts';
import type { HostAddresses, ReachCell, ReachMatrix } from './reach-matrix.ts';
import type { Rejection } from './rejection.ts';

/** Everybody's addresses, for what only shows when they are seen together. */
export class AddressOwners {
  readonly #owners = new Map<string, Set<HostName>>();

  constructor(candidates: readonly HostAddresses[]) {
    for (const { host, addresses } of candidates)
      for (const { address, scope } of addresses) {
        if (scope === 'host') continue;
        const key = canonicalIp(address);
        this.#owners.set(key, (this.#owners.get(key) ?? new Set()).add(host));
      }
  }

  /** Hosts that have this address, in the order they were given. */
  of(address: string): readonly HostName[] {
    return [...(this.#owners.get(canonicalIp(address)) ?? [])];
  }
}

/** What no operator's wish can outweigh (A2): `null` where others may try it. */
export function fatalFlaw(address: HostAddress, owners: AddressOwners): Rejection | null {
  if (address.scope === 'host' || isLoopback(address.address)) return { kind: 'loopback' };
  if (!address.isUp) return { kind: 'down' };
  const hosts = owners.of(address.address);
  if (hosts.length > 1) return { kind: 'shared', hosts };
  return address.listener.kind === 'none' ? { kind: 'not-listening', why: address.listener.why } : null;
}

/** What speaks against an address that nobody asked for by name. */
export function weakness(address: HostAddress, siblings: readonly HostAddress[]): Rejection | null {
  for (const flag of ['deprecated', 'temporary', 'tentative'] as const)
    if (address.flags.includes(flag)) return { kind: 'passing', flag };
  return looksVirtual(address, siblings) ? { kind: 'virtual' } : null;
}

/**
 * Whether the address looks like one that keepalived and its kind move about: a second one in the network of another, or
 * one without a network beside one that has it. A cloud's only address also has no network, and DHCPv6 gives such ones.
 */
function looksVirtual(address: HostAddress, siblings: readonly HostAddress[]): boolean {
  if (address.flags.includes('secondary')) return true;
  if (address.flags.includes('dynamic') || address.scope !== 'global') return false;
  const isAlone = ({ address: text, prefixLength }: HostAddress): boolean =>
    prefixLength === (text.includes(':') ? 128 : 32);
  const isV6 = address.address.includes(':');
  return (
    isAlone(address) &&
    siblings.some(
      (other) =>
        other.interface === address.interface &&
        other.scope === 'global' &&
        other.address.includes(':') === isV6 &&
        !isAlone(other),
    )
  );
}

/** Where the other hosts came to when they tried the address; `null` when all came to its host. */
export function experience(cells: readonly (ReachCell | null)[], others: readonly HostName[]): Rejection | null {
  const tried = cells.filter((cell) => cell !== null);
  const stray = tried.flatMap(({ reach, from, to }) =>
    reach.kind !== 'unreachable' && reach.by.host !== to ? [{ from, by: reach.by.host }] : [],
  )[0];
  if (stray !== undefined) return { kind: 'answered-by', ...stray };
  const unreached = tried.flatMap(({ from, reach }) =>
    reach.kind === 'unreachable' ? [{ host: from, why: reach.why }] : [],
  );
  if (unreached.length > 0) return { kind: 'unreachable', from: unreached };
  const lossy = tried.filter(({ reach }) => reach.kind === 'frame-lost').map(({ from }) => from);
  if (lossy.length > 0) return { kind: 'frame-lost', from: lossy };
  const missing = others.filter((_host, index) => (cells[index] ?? null) === null);
  return missing.length > 0 ? { kind: 'not-tried', from: missing } : null;
}

/** How each of the others fared with a host's address, in their order. */
export const cellsOf = (
  matrix: ReachMatrix,
  others: readonly HostName[],
  at: { readonly host: HostName; readonly address: string },
): readonly (ReachCell | null)[] => others.map((from) => matrix.cell({ from, to: at.host }, at.address));

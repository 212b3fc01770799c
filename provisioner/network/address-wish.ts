/** An inventory's word on a host's address: granted only where every other host comes to it. Pure. */
import { P4Error } from '../../protocol/errors.ts';
import type { Advertise } from '../../protocol/inventory.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import type { JudgedAddress, JudgedHost } from './judged-host.ts';
import { rejectionText } from './rejection.ts';

export type Wish =
  | { readonly kind: 'none' }
  | { readonly kind: 'granted'; readonly wanted: string; readonly address: JudgedAddress }
  | { readonly kind: 'refused'; readonly error: P4Error };

/** @param hostCount 1: nobody else has to reach it */
export function wishOf(judged: JudgedHost, advertise: Advertise, hostCount: number): Wish {
  if (advertise.kind === 'measured') return { kind: 'none' };
  const wanted = advertise.kind === 'address' ? advertise.address : advertise.interface;
  const named = judged.addresses.filter((address) => isMeant(address, advertise));
  const global = named.filter(({ candidate }) => candidate.scope === 'global');
  // Who names an interface means its addresses, and a link-local one only where it is all there is (A2).
  const meant = advertise.kind === 'interface' && global.length > 0 ? global : named;
  if (meant.length === 0) return { kind: 'refused', error: unknown(judged, wanted) };
  const good = meant.filter(({ refusal }) => refusal === null || (hostCount === 1 && refusal.kind === 'loopback'));
  const [best] = [...good].sort(better);
  return best === undefined
    ? { kind: 'refused', error: unreachable(judged, wanted, meant) }
    : { kind: 'granted', wanted, address: best };
}

function isMeant({ candidate }: JudgedAddress, advertise: Exclude<Advertise, { kind: 'measured' }>): boolean {
  return advertise.kind === 'address'
    ? canonicalIp(candidate.address) === canonicalIp(advertise.address)
    : candidate.interface === advertise.interface;
}

/** Of an interface's addresses: those without weakness before others, link-local last, then the faster. */
function better(one: JudgedAddress, other: JudgedAddress): number {
  const rank = ({ candidate, rejection }: JudgedAddress): number =>
    (candidate.scope === 'global' ? 0 : 2) + (rejection === null ? 0 : 1);
  return rank(one) - rank(other) || (other.slowest?.bytesPerSecond ?? 0) - (one.slowest?.bytesPerSecond ?? 0);
}

function unknown({ host, addresses }: JudgedHost, wanted: string): P4Error {
  const has = addresses.map(({ candidate }) => `${candidate.address} on ${candidate.interface}`);
  return new P4Error('ADVERTISE_UNKNOWN', { host, wanted, has: has.length === 0 ? 'none' : has });
}

function unreachable({ host }: JudgedHost, wanted: string, meant: readonly JudgedAddress[]): P4Error {
  const why = meant.flatMap(({ candidate, refusal }) =>
    refusal === null ? [] : [`${candidate.address}: ${rejectionText(refusal)}`],
  );
  return new P4Error('ADVERTISE_UNREACHABLE', { host, wanted, why });
}

/** A decision that would move a host under a loaded ring is told, and not followed: its neighbours dial the former address. */
import type { HostName, RingName } from '../../protocol/ids.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import type { HostDecision } from './address-choice.ts';
import { choiceText } from './choice-text.ts';

export interface LoadedRing {
  readonly ring: RingName;
  readonly hosts: readonly HostName[];
}

export const ringsOn = (host: HostName, loaded: readonly LoadedRing[]): readonly RingName[] =>
  loaded.filter(({ hosts }) => hosts.includes(host)).map(({ ring }) => ring);

export type HostMove =
  /** Nothing to decide: the same address, or a host that had none. */
  | { readonly kind: 'follow' }
  /** Another address from now on. */
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  /** Another address would be better, but a ring uses this one. */
  | { readonly kind: 'stay'; readonly at: string; readonly better: string; readonly notice: string };

/** @param former the address that the host is advertised at, without a zone; `null` for a new host */
export function hostMove(
  { host, chosen }: HostDecision,
  former: string | null,
  ringsLoaded: readonly LoadedRing[],
): HostMove {
  if (chosen === null || former === null || canonicalIp(chosen.address) === canonicalIp(former))
    return { kind: 'follow' };
  const rings = ringsOn(host, ringsLoaded);
  if (rings.length === 0) return { kind: 'move', from: former, to: chosen.address };
  const notice =
    `${host} stays at ${former} while ${rings.join(', ')} ${rings.length === 1 ? 'is' : 'are'} loaded; ` +
    `measured now: ${chosen.address} (${choiceText(chosen.reason)}). Unload, then deploy again to move it.`;
  return { kind: 'stay', at: former, better: chosen.address, notice };
}

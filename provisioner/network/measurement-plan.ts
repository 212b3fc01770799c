/** What a measurement has to try, and how its bursts are told to its attempts. Pure. */
import type { HostName } from '../../protocol/ids.ts';
import type { Advertise } from '../../protocol/inventory.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import type { BurstOutcome, HostAddress } from '../../protocol/probe-messages.ts';
import { AddressOwners, fatalFlaw, weakness } from './candidate.ts';
import { isAtTarget, type HostAddresses, type ReachCell } from './reach-matrix.ts';

export interface ReachTarget {
  readonly from: HostName;
  readonly to: HostName;
  readonly address: string;
  readonly zone: string | null;
  readonly port: number;
}

export interface Burst extends ReachTarget {
  /** As the target saw it come: the other end of the way. */
  readonly source: string;
  readonly outcome: BurstOutcome | null;
}

export interface MeasurementPlan {
  readonly candidates: readonly HostAddresses[];
  readonly overrides: ReadonlyMap<HostName, Advertise>;
}

/** Zones of one host that link-local addresses are tried over: more are those of containers. */
const zonesMost = 8;

/**
 * @param names who tries: the hosts and the operator
 * @param which `global`: all that may serve but link-local ones. `unless`: link-local ones, if by these attempts a host
 *   has no other address that all others reach
 */
export function reachTargets(
  names: readonly HostName[],
  { candidates, overrides }: MeasurementPlan,
  which: 'global' | { readonly unless: readonly ReachCell[] },
): readonly ReachTarget[] {
  const owners = new AddressOwners(candidates);
  const scope = which === 'global' ? 'global' : 'link';
  if (which !== 'global' && !isLinkLocalNeeded({ candidates, overrides }, which.unless)) return [];
  return candidates.flatMap(({ host: to, addresses }) =>
    addresses
      .filter((address) => address.scope === scope && fatalFlaw(address, owners) === null)
      .flatMap(({ address, listener }) => {
        if (listener.kind === 'none') return [];
        const { port } = listener;
        return names
          .filter((from) => from !== to)
          .flatMap((from) => zonesFor(address, from, candidates).map((zone) => ({ from, to, address, zone, port })));
      }),
  );
}

/** Over which of its interfaces a host may reach an address: the kernel knows, but for link-local IPv6. */
function zonesFor(address: string, from: HostName, candidates: readonly HostAddresses[]): readonly (string | null)[] {
  if (!/^fe[89ab]/i.test(address)) return [null];
  const own = candidates.find(({ host }) => host === from)?.addresses ?? [];
  const zones = own.filter((each) => each.scope === 'link' && each.isUp && each.address.includes(':'));
  return [...new Set(zones.map((each) => each.interface))].slice(0, zonesMost);
}

function isLinkLocalNeeded({ candidates, overrides }: MeasurementPlan, cells: readonly ReachCell[]): boolean {
  if (candidates.length < 2) return false;
  const owners = new AddressOwners(candidates);
  const arrivals = new Map<string, number>();
  for (const cell of cells.filter(isAtTarget)) {
    const key = `${cell.to} ${canonicalIp(cell.address)}`;
    arrivals.set(key, (arrivals.get(key) ?? 0) + 1);
  }
  return candidates.some(({ host, addresses }) => {
    const wish = overrides.get(host) ?? { kind: 'measured' };
    const named = addresses.filter((each) => isNamed(each, wish));
    const isWanted = named.some(({ scope }) => scope === 'link') && !named.some(({ scope }) => scope === 'global');
    const hasBetter = addresses.some(
      (each) =>
        (arrivals.get(`${host} ${canonicalIp(each.address)}`) ?? 0) === candidates.length - 1 &&
        fatalFlaw(each, owners) === null &&
        (weakness(each, addresses) === null || isNamed(each, wish)),
    );
    return isWanted || !hasBetter;
  });
}

const isNamed = (address: HostAddress, wish: Advertise): boolean =>
  (wish.kind === 'address' && canonicalIp(wish.address) === canonicalIp(address.address)) ||
  (wish.kind === 'interface' && wish.interface === address.interface);

/** A burst for each way that leads where it should; one way is measured once, from whichever end comes first. */
export function burstsBetween(
  cells: readonly ReachCell[],
  { candidates, overrides }: MeasurementPlan,
): readonly Burst[] {
  const siblings = new Map(candidates.map(({ host, addresses }) => [host, addresses]));
  const ways = new Set<string>();
  return cells.flatMap((cell): readonly Burst[] => {
    const { from, to, address, zone, reach } = cell;
    if (!isAtTarget(cell) || reach.kind !== 'reached') return [];
    const known = siblings.get(to) ?? [];
    const candidate = known.find((each) => canonicalIp(each.address) === canonicalIp(address));
    if (candidate === undefined || candidate.listener.kind === 'none') return [];
    const wish = overrides.get(to) ?? { kind: 'measured' };
    if (weakness(candidate, known) !== null && !isNamed(candidate, wish)) return [];
    const way = wayOf({ from, to, address, source: reach.seenAs });
    if (ways.has(way)) return [];
    ways.add(way);
    return [{ from, to, address, zone, port: candidate.listener.port, source: reach.seenAs, outcome: null }];
  });
}

/** A way's two ends, whichever of them calls. */
function wayOf({ from, to, address, source }: Pick<Burst, 'from' | 'to' | 'address' | 'source'>): string {
  return [`${from} ${canonicalIp(source)}`, `${to} ${canonicalIp(address)}`].sort().join(' ');
}

/** The attempts with what was measured over their ways; turned round where the other end called. */
export function withBursts(cells: readonly ReachCell[], bursts: readonly Burst[]): readonly ReachCell[] {
  const byWay = new Map(bursts.map((burst) => [wayOf(burst), burst]));
  return cells.map((cell) => {
    const { from, to, address, reach } = cell;
    if (!isAtTarget(cell) || reach.kind !== 'reached') return cell;
    const burst = byWay.get(wayOf({ from, to, address, source: reach.seenAs }));
    const outcome = burst?.outcome ?? null;
    if (outcome === null) return cell;
    return { ...cell, burst: burst?.from === from ? outcome : turned(outcome) };
  });
}

const turned = (outcome: BurstOutcome): BurstOutcome =>
  outcome.kind === 'unmeasured'
    ? outcome
    : { ...outcome, upBytesPerSecond: outcome.downBytesPerSecond, downBytesPerSecond: outcome.upBytesPerSecond };

/** Which of the addresses that would serve is chosen for each host that has the choice. Pure. */
import type { HostName } from '../../protocol/ids.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import type { AddressQuestion, ChoiceReason, SlowestWay } from './address-choice.ts';
import type { JudgedAddress, JudgedHost } from './judged-host.ts';
import { clearly } from './reach-matrix.ts';
import { subnetOf } from './subnet.ts';

export interface AssignedAddress {
  readonly address: JudgedAddress;
  readonly reason: ChoiceReason;
}

/** Hosts without an address that serves are not in it, nor are those whose address the inventory names. */
export type Assignment = ReadonlyMap<HostName, AssignedAddress>;

export function assignmentFor(judged: readonly JudgedHost[], question: AddressQuestion): Assignment {
  const free = judged.filter(({ host }) => (question.overrides.get(host)?.kind ?? 'measured') === 'measured');
  const [only] = free;
  if (question.hosts.length === 1) return only === undefined ? new Map() : alone(only, question);
  const choosers = free.map(chooserOf).filter(({ usable }) => usable.length > 0);
  if (choosers.length === 0) return new Map();
  return fastest(choosers, question);
}

interface Chooser {
  readonly host: HostName;
  /** Fastest first. */
  readonly usable: readonly JudgedAddress[];
}

const chooserOf = ({ host, addresses }: JudgedHost): Chooser => ({
  host,
  usable: addresses.filter(({ rejection }) => rejection === null).sort((one, other) => rateOf(other) - rateOf(one)),
});

const rateOf = ({ slowest }: JudgedAddress): number => slowest?.bytesPerSecond ?? 0;

/** One address for each host, and the rate of the slowest way between them. */
interface Plan {
  readonly addresses: ReadonlyMap<HostName, JudgedAddress>;
  readonly slowest: SlowestWay;
}

function fastest(choosers: readonly Chooser[], question: AddressQuestion): Assignment {
  const mixed = planOf(choosers, ({ usable }) => usable[0] ?? null);
  if (mixed === null) return new Map();
  const networks = networksOf(choosers);
  const [network] = networks.sort((one, other) => other.plan.slowest.bytesPerSecond - one.plan.slowest.bytesPerSecond);
  const atLeast = mixed.slowest.bytesPerSecond * clearly;
  const kept = formerPlan(choosers, question.former);
  if (kept !== null && (question.isInDoubt === true || kept.slowest.bytesPerSecond >= atLeast))
    return assigned(kept, (slowest, host) =>
      question.former.has(host) ? { kind: 'kept', slowest } : { kind: 'fastest-of-host', slowest },
    );
  if (network !== undefined && network.plan.slowest.bytesPerSecond >= atLeast)
    return assigned(network.plan, () => ({
      kind: 'fastest-network',
      network: network.name,
      slowest: network.plan.slowest,
    }));
  return assigned(mixed, (slowest) => ({ kind: 'fastest-of-host', slowest }));
}

function assigned(plan: Plan, reason: (slowest: SlowestWay, host: HostName) => ChoiceReason): Assignment {
  return new Map(
    [...plan.addresses].map(([host, address]) => [
      host,
      { address, reason: reason(address.slowest ?? plan.slowest, host) },
    ]),
  );
}

/** `null` where a host gets none. */
function planOf(choosers: readonly Chooser[], choose: (chooser: Chooser) => JudgedAddress | null): Plan | null {
  const addresses = new Map<HostName, JudgedAddress>();
  for (const chooser of choosers) {
    const address = choose(chooser);
    if (address === null) return null;
    addresses.set(chooser.host, address);
  }
  const ways = [...addresses.values()].flatMap(({ slowest }) => (slowest === null ? [] : [slowest]));
  const [first, ...more] = ways;
  if (first === undefined) return null;
  return {
    addresses,
    slowest: more.reduce((one, two) => (two.bytesPerSecond < one.bytesPerSecond ? two : one), first),
  };
}

/** The networks in which every host has an address. */
function networksOf(choosers: readonly Chooser[]): { readonly name: string; readonly plan: Plan }[] {
  const names = new Set(choosers.flatMap(({ usable }) => usable.map(networkOf)));
  return [...names].flatMap((name) => {
    if (name === null) return [];
    const plan = planOf(choosers, ({ usable }) => usable.find((address) => networkOf(address) === name) ?? null);
    return plan === null ? [] : [{ name, plan }];
  });
}

/** Link-local addresses of all links look as if they were in one network. */
const networkOf = ({ candidate: { address, prefixLength, scope } }: JudgedAddress): string | null =>
  scope === 'link' ? null : subnetOf(address, prefixLength);

/** What was chosen before where it still serves; hosts that are new join its networks if they can. */
function formerPlan(choosers: readonly Chooser[], former: AddressQuestion['former']): Plan | null {
  const formerOf = ({ host, usable }: Chooser): JudgedAddress | null =>
    usable.find(({ candidate }) => canonicalIp(candidate.address) === canonicalIp(former.get(host) ?? '')) ?? null;
  const kept = choosers.map(formerOf).filter((address) => address !== null);
  if (kept.length === 0) return null;
  const networks = new Set(kept.map(networkOf));
  return planOf(choosers, (chooser) => {
    if (former.has(chooser.host)) return formerOf(chooser);
    return chooser.usable.find((address) => networks.has(networkOf(address))) ?? chooser.usable[0] ?? null;
  });
}

/** A fleet of one: nobody else has to reach the host, so its former address will do, or where ssh finds it. */
function alone({ host, addresses }: JudgedHost, question: AddressQuestion): Assignment {
  const named = (text: string | undefined): JudgedAddress | undefined =>
    addresses.find(
      ({ candidate, rejection }) =>
        text !== undefined &&
        canonicalIp(candidate.address) === canonicalIp(text) &&
        (rejection === null || rejection.kind === 'loopback'),
    );
  const ssh = named(question.sshAddresses.get(host));
  const address = named(question.former.get(host)) ?? ssh ?? addresses.find(({ rejection }) => rejection === null);
  if (address === undefined) return new Map();
  return new Map([[host, { address, reason: { kind: 'alone', isSshAddress: address === ssh } }]]);
}

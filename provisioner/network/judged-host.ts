/** A host's addresses, each with what stands against it and how fast it is. Pure. */
import type { HostName } from '../../protocol/ids.ts';
import type { HostAddress } from '../../protocol/probe-messages.ts';
import type { AddressQuestion, SlowestWay } from './address-choice.ts';
import { cellsOf, experience, fatalFlaw, weakness, type AddressOwners } from './candidate.ts';
import { isAtTarget, slowerDirection } from './reach-matrix.ts';
import type { Rejection } from './rejection.ts';

export interface JudgedAddress {
  readonly candidate: HostAddress;
  /** `null`: it can be advertised. */
  readonly rejection: Rejection | null;
  /** What stands against it even when an operator asks for it by name: a flaw, or hosts that do not come to it. */
  readonly refusal: Rejection | null;
  /** `null` where no other host came to it, or there is none. */
  readonly slowest: SlowestWay | null;
  /** Whether at least one other host came to it. */
  readonly isReached: boolean;
}

export interface JudgedHost {
  readonly host: HostName;
  readonly addresses: readonly JudgedAddress[];
}

export function judgedHost(host: HostName, question: AddressQuestion, owners: AddressOwners): JudgedHost {
  const siblings = question.candidates.find((each) => each.host === host)?.addresses ?? [];
  const others = question.hosts.filter((other) => other !== host);
  const judged = siblings.map((candidate): JudgedAddress => {
    const cells = cellsOf(question.matrix, others, { host, address: candidate.address });
    const arrived = cells.filter((cell) => cell !== null).filter(isAtTarget);
    const ways = arrived.map((cell) => ({ from: cell.from, to: host, bytesPerSecond: slowerDirection(cell) }));
    const flaw = fatalFlaw(candidate, owners);
    const refusal = flaw ?? experience(cells, others);
    return {
      candidate,
      rejection: flaw ?? weakness(candidate, siblings) ?? refusal,
      refusal,
      slowest:
        ways.length === 0 ? null : ways.reduce((one, two) => (two.bytesPerSecond < one.bytesPerSecond ? two : one)),
      isReached: flaw === null && arrived.length > 0,
    };
  });
  return { host, addresses: withoutLinkLocal(judged) };
}

/** A link-local address serves only where nothing else does (A2). */
function withoutLinkLocal(judged: readonly JudgedAddress[]): readonly JudgedAddress[] {
  const isBetter = ({ candidate, rejection }: JudgedAddress): boolean =>
    candidate.scope === 'global' && rejection === null;
  if (!judged.some(isBetter)) return judged;
  return judged.map((address) =>
    address.candidate.scope === 'link' && address.rejection?.kind !== 'down'
      ? { ...address, rejection: { kind: 'link-local' } }
      : address,
  );
}

/** The chosen address and every other that at least one host came to: a ring of fewer hosts may use those (A1). */
export function listenAddresses({ addresses }: JudgedHost, chosen: JudgedAddress): readonly string[] {
  const more = addresses.filter(
    (address) =>
      address !== chosen && address.isReached && address.candidate.scope === 'global' && isLasting(address.rejection),
  );
  return [chosen, ...more].map(({ candidate }) => listenText(candidate));
}

/** Nobody listens at an address that is about to go or to move. */
const isLasting = (rejection: Rejection | null): boolean =>
  rejection?.kind !== 'virtual' && rejection?.kind !== 'passing';

/** With the host's own zone where the address wants one. */
export const listenText = ({ address, scope, interface: name }: HostAddress): string =>
  scope === 'link' && address.includes(':') ? `${address}%${name}` : address;

/**
 * Chooses the address that each host advertises (A1, A2). Pure: a measurement in, a decision with all its reasons out.
 *
 * The fastest network that all hosts share wins, judged by its slowest pair: a ring is as fast as its slowest hop. Where
 * no one network has them all (routed networks, say), each host gets the fastest of its addresses that all others
 * reach. What was chosen before stays unless something else is clearly faster, so that decisions do not flap.
 */
import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import type { Advertise } from '../../protocol/inventory.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import { wishOf } from './address-wish.ts';
import { AddressOwners } from './candidate.ts';
import { assignmentFor, type AssignedAddress, type Assignment } from './address-assignment.ts';
import { judgedHost, listenAddresses, type JudgedAddress, type JudgedHost } from './judged-host.ts';
import { clearly, type HostAddresses, type ReachMatrix } from './reach-matrix.ts';
import { rejectionText, type Rejection } from './rejection.ts';

export interface AddressQuestion {
  /** Those that have to reach each other, at least one. */
  readonly hosts: readonly HostName[];
  /** All addresses of those hosts, and of others where an address that two have matters. */
  readonly candidates: readonly HostAddresses[];
  readonly matrix: ReachMatrix;
  /** Hosts that are not in it are measured. */
  readonly overrides: ReadonlyMap<HostName, Advertise>;
  /** What was chosen before. */
  readonly former: ReadonlyMap<HostName, string>;
  /** That what was chosen before stays where it still serves, whatever is faster: the measurement is in doubt. */
  readonly isInDoubt?: boolean;
  /** How the operator reaches a host, where that is an address: good enough for a fleet of one. */
  readonly sshAddresses: ReadonlyMap<HostName, string>;
}

/** The slowest of the hosts' ways to an address. */
export interface SlowestWay {
  readonly from: HostName;
  readonly to: HostName;
  /** In the slower direction; 0 where no burst came through. */
  readonly bytesPerSecond: number;
}

export type ChoiceReason =
  | { readonly kind: 'fastest-network'; readonly network: string; readonly slowest: SlowestWay }
  | { readonly kind: 'fastest-of-host'; readonly slowest: SlowestWay }
  | { readonly kind: 'kept'; readonly slowest: SlowestWay }
  | { readonly kind: 'wanted'; readonly wanted: string; readonly slowest: SlowestWay | null }
  /** A fleet of one host. */
  | { readonly kind: 'alone'; readonly isSshAddress: boolean };

export interface ChosenAddress {
  /** Without a zone. */
  readonly address: string;
  readonly interface: string;
  readonly isLinkLocal: boolean;
  readonly reason: ChoiceReason;
}

export interface RejectedAddress {
  readonly address: string;
  readonly interface: string;
  readonly rejection: Rejection;
}

export interface HostDecision {
  readonly host: HostName;
  /** `null` where there is none: then a refusal says why. */
  readonly chosen: ChosenAddress | null;
  readonly rejected: readonly RejectedAddress[];
  /** Where its agent is to listen, the chosen one first; link-local ones with the host's own zone. */
  readonly listen: readonly string[];
}

export interface AddressChoice {
  /** In the order of the question's hosts. */
  readonly decisions: readonly HostDecision[];
  /** ADVERTISE_UNREACHABLE, ADVERTISE_UNKNOWN, ADVERTISE_NONE; the choice holds only where there is none. */
  readonly refusals: readonly P4Error[];
}

export function chooseAddresses(question: AddressQuestion): AddressChoice {
  const owners = new AddressOwners(question.candidates);
  const judged = question.hosts.map((host) => judgedHost(host, question, owners));
  const assignment = assignmentFor(judged, question);
  const answers = judged.map((host) => decisionOf(host, question, assignment));
  return {
    decisions: answers.map(({ decision }) => decision),
    refusals: answers.flatMap(({ refusal }) => (refusal === null ? [] : [refusal])),
  };
}

interface Answer {
  readonly decision: HostDecision;
  readonly refusal: P4Error | null;
}

function decisionOf(judged: JudgedHost, question: AddressQuestion, assignment: Assignment): Answer {
  const advertise = question.overrides.get(judged.host) ?? { kind: 'measured' };
  const wish = wishOf(judged, advertise, question.hosts.length);
  switch (wish.kind) {
    case 'refused':
      return { decision: withoutChoice(judged), refusal: wish.error };
    case 'granted': {
      const { wanted, address } = wish;
      const reason: ChoiceReason = { kind: 'wanted', wanted, slowest: address.slowest };
      return { decision: decided(judged, { address, reason }, () => ({ kind: 'not-wanted', wanted })), refusal: null };
    }
    case 'none': {
      const choice = assignment.get(judged.host);
      if (choice === undefined) return { decision: withoutChoice(judged), refusal: noneFor(judged) };
      const { address, reason } = choice;
      return { decision: decided(judged, { address, reason }, (other) => lostTo(address, other)), refusal: null };
    }
  }
}

function decided(
  judged: JudgedHost,
  { address: chosen, reason }: AssignedAddress,
  whyNot: (other: JudgedAddress) => Rejection,
): HostDecision {
  const { address, interface: name, scope } = chosen.candidate;
  return {
    host: judged.host,
    chosen: { address, interface: name, isLinkLocal: scope === 'link', reason },
    rejected: judged.addresses
      .filter((other) => other !== chosen)
      .map((other) => ({
        address: other.candidate.address,
        interface: other.candidate.interface,
        rejection: other.rejection ?? whyNot(other),
      })),
    listen: listenAddresses(judged, chosen),
  };
}

const withoutChoice = (judged: JudgedHost): HostDecision => ({
  host: judged.host,
  chosen: null,
  rejected: rejectedIn(judged),
  listen: [],
});

const rejectedIn = ({ addresses }: JudgedHost): readonly RejectedAddress[] =>
  addresses.flatMap(({ candidate: { address, interface: name }, rejection }) =>
    rejection === null ? [] : [{ address, interface: name, rejection }],
  );

/** Why an address that would have served was not taken. */
function lostTo(chosen: JudgedAddress, other: JudgedAddress): Rejection {
  const [rate, chosenRate] = [other.slowest?.bytesPerSecond ?? 0, chosen.slowest?.bytesPerSecond ?? 0];
  return rate < chosenRate * clearly
    ? { kind: 'slower', bytesPerSecond: rate, chosenBytesPerSecond: chosenRate }
    : { kind: 'no-faster', chosen: canonicalIp(chosen.candidate.address) };
}

function noneFor(judged: JudgedHost): P4Error {
  const reasons = rejectedIn(judged).map(({ address, rejection }) => `${address}: ${rejectionText(rejection)}`);
  return new P4Error('ADVERTISE_NONE', { host: judged.host, addresses: reasons.length === 0 ? 'none' : reasons });
}

/**
 * Which bursts are sent again before what they say is believed. Pure.
 *
 * A burst on a busy machine comes out lower than its network is, by any factor; hardly ever higher. So a decision is in doubt
 * while it takes a host away from where it stands, and while an address that lost came, in its best burst, near to the one
 * that won. Both addresses are then measured again, and the middle of what each way gave counts: a burst that comes out
 * low changes nothing, a network that has become slow is slow each time.
 */
import type { HostName } from '../../protocol/ids.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import type { BurstOutcome } from '../../protocol/probe-messages.ts';
import { chooseAddresses, type AddressQuestion, type HostDecision } from './address-choice.ts';
import { withBursts, type Burst } from './measurement-plan.ts';
import { clearly, ReachMatrix, type ReachCell } from './reach-matrix.ts';

/** A way, and what every burst over it gave. */
export interface BurstSamples {
  readonly burst: Burst;
  readonly outcomes: readonly BurstOutcome[];
}

export interface RepeatQuestion extends Pick<AddressQuestion, 'candidates' | 'overrides' | 'former'> {
  /** The attempts, without bursts. */
  readonly cells: readonly ReachCell[];
}

/** Bursts over a way before a host is moved from where it stands: two may come out low. */
const burstsBeforeMove = 5;
/** Bursts over the ways of two addresses that are near to each other: one may come out low. */
const burstsOfRivals = 3;

/** @returns those of one more round, the addresses of a pair of hosts one after the other; none where all is believed */
export function burstsToRepeat(question: RepeatQuestion, samples: readonly BurstSamples[]): readonly Burst[] {
  const { cells, ...rest } = question;
  const matrix = new ReachMatrix(withBursts(cells, middleBursts(samples)));
  const hosts = question.candidates.map(({ host }) => host);
  const { decisions } = chooseAddresses({ ...rest, hosts, matrix, sshAddresses: new Map() });
  const wanted = new Map<BurstSamples, number>();
  for (const { address, host, least } of decisions.flatMap((decision) => doubtsOf(decision, question, samples)))
    for (const way of samples)
      if (leadsTo(way.burst, host, address)) wanted.set(way, Math.max(least, wanted.get(way) ?? 0));
  return [...wanted]
    .filter(([{ outcomes }, least]) => outcomes.length < least)
    .map(([{ burst }]) => burst)
    .sort((one, other) => (pairOf(one) < pairOf(other) ? -1 : pairOf(one) > pairOf(other) ? 1 : 0));
}

const pairOf = ({ from, to }: Burst): string => [from, to].sort().join(' ');

/** An address of which at least so many bursts over each way are wanted. */
interface Doubt {
  readonly host: HostName;
  readonly address: string;
  readonly least: number;
}

function doubtsOf(
  { host, chosen, rejected }: HostDecision,
  { former }: RepeatQuestion,
  samples: readonly BurstSamples[],
): readonly Doubt[] {
  if (chosen === null || chosen.reason.kind === 'wanted' || chosen.reason.kind === 'alone') return [];
  const { reason, address } = chosen;
  const rivals = rejected.filter(({ rejection }) => rejection.kind === 'slower' || rejection.kind === 'no-faster');
  const rate = reason.slowest.bytesPerSecond;
  const standing = canonicalIp(former.get(host) ?? '');
  return rivals.flatMap(({ address: rival }): readonly Doubt[] => {
    const isMove = canonicalIp(rival) === standing;
    const best = bestRate(samples, host, rival);
    const isNear = reason.kind === 'kept' ? best * clearly > rate : best >= rate * clearly;
    if (!isMove && !isNear) return [];
    const least = isMove ? burstsBeforeMove : burstsOfRivals;
    return [
      { host, address, least },
      { host, address: rival, least },
    ];
  });
}

const leadsTo = ({ from, to, address: target, source }: Burst, host: HostName, address: string): boolean =>
  (to === host && canonicalIp(target) === canonicalIp(address)) ||
  (from === host && canonicalIp(source) === canonicalIp(address));

/** Of any way to an address, in its faster direction. */
function bestRate(samples: readonly BurstSamples[], host: HostName, address: string): number {
  const outcomes = middleBursts(samples.filter(({ burst }) => leadsTo(burst, host, address)));
  return Math.max(
    0,
    ...outcomes.map(({ outcome }) =>
      outcome?.kind === 'measured' ? Math.max(outcome.upBytesPerSecond, outcome.downBytesPerSecond) : 0,
    ),
  );
}

export const middleBursts = (samples: readonly BurstSamples[]): readonly Burst[] =>
  samples.map(({ burst, outcomes }) => ({ ...burst, outcome: middleOutcome(outcomes) }));

/** The middle of each direction; that of bursts that came through only where most did. */
export function middleOutcome(outcomes: readonly BurstOutcome[]): BurstOutcome | null {
  const measured = outcomes.filter((outcome) => outcome.kind === 'measured');
  const failed = outcomes.filter((outcome) => outcome.kind === 'unmeasured');
  if (measured.length <= failed.length) return failed[0] ?? null;
  return {
    kind: 'measured',
    upBytesPerSecond: middleOf(measured.map(({ upBytesPerSecond }) => upBytesPerSecond)),
    downBytesPerSecond: middleOf(measured.map(({ downBytesPerSecond }) => downBytesPerSecond)),
  };
}

/** Of an even number the greater of the two in the middle: bursts err downwards. */
const middleOf = (rates: readonly number[]): number =>
  [...rates].sort((one, other) => one - other)[Math.floor(rates.length / 2)] ?? 0;

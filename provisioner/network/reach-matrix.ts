/** What was measured between every pair of hosts, as deploy keeps it in fleet.json. Values only. */
import type { HostName } from '../../protocol/ids.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import type { BurstOutcome, HostAddress, ReachOutcome } from '../../protocol/probe-messages.ts';

/** One host's attempt at one address of another. */
export interface ReachCell {
  readonly from: HostName;
  readonly to: HostName;
  /** Without a zone. */
  readonly address: string;
  /** For a link-local address: the interface of `from` that it was tried over; else `null`. */
  readonly zone: string | null;
  readonly reach: ReachOutcome;
  /** `null` where none was tried: not reached, or never to be used. `up` is from `from`. */
  readonly burst: BurstOutcome | null;
}

export interface HostAddresses {
  readonly host: HostName;
  readonly addresses: readonly HostAddress[];
}

export interface Measurement {
  /** Every host's addresses, those that were not probed included. */
  readonly candidates: readonly HostAddresses[];
  readonly cells: readonly ReachCell[];
}

/** A measurement made ready for questions. */
export class ReachMatrix {
  readonly #cells = new Map<string, ReachCell>();

  constructor(cells: readonly ReachCell[]) {
    for (const cell of cells) {
      const key = keyOf(cell.from, cell.to, cell.address);
      const known = this.#cells.get(key);
      // Of the ways to a link-local address, one that leads there.
      if (known === undefined || !isAtTarget(known)) this.#cells.set(key, cell);
    }
  }

  /** `null` where it was not tried. */
  cell({ from, to }: Pick<ReachCell, 'from' | 'to'>, address: string): ReachCell | null {
    return this.#cells.get(keyOf(from, to, address)) ?? null;
  }
}

const keyOf = (from: HostName, to: HostName, address: string): string => `${from} ${to} ${canonicalIp(address)}`;

/** Whether the attempt came to the host it was meant for, and a large frame passed. */
export const isAtTarget = ({ reach, to }: ReachCell): boolean => reach.kind === 'reached' && reach.by.host === to;

/** The slower direction, in bytes a second; 0 where it was not measured. */
export const slowerDirection = ({ burst }: ReachCell): number =>
  burst?.kind === 'measured' ? Math.min(burst.upBytesPerSecond, burst.downBytesPerSecond) : 0;

/** A rate below this share of another is clearly less; nearer ones are alike, since a short burst tells no more. */
export const clearly = 0.8;

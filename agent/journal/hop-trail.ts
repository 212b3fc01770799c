/**
 * The trail of hops: gathered in memory, written in batches that ride along with a commit, a ring of the newest on the
 * disk. It is for people and exempt from J2; when it cannot be written as fast as hops come, the oldest go, counted.
 */
import type { LoadId, NodeIndex } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { HopTrail } from '../records.ts';

/** A hop as it is kept. */
export interface KeptHop extends HopTrail {
  /** Counts the hops this journal has kept, from 1. */
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export class GatheredHops {
  #hops: { readonly hop: HopTrail; readonly at: number }[] = [];
  #number: number;
  #dropped = 0;

  /** `last`: number of the last hop that the journal holds. */
  constructor(last: number) {
    this.#number = last;
  }

  get count(): number {
    return this.#hops.length;
  }

  /** Hops that were dropped because too many had gathered. */
  get dropped(): number {
    return this.#dropped;
  }

  add(hop: HopTrail, at: number): void {
    this.#hops.push({ hop, at });
    if (this.#hops.length <= limits.journalGatheredHops) return;
    // A quarter at once: shifting one by one would cost the whole list for each hop.
    this.#dropped += this.#hops.splice(0, limits.journalGatheredHops / 4).length;
  }

  /** Takes all out, as the JSON array that the store inserts; `null` if fewer than `least` have gathered. */
  take(least: number): string | null {
    if (this.#hops.length === 0 || this.#hops.length < least) return null;
    const rows = this.#hops.map(({ hop, at }) => this.#rowText(hop, at));
    this.#hops = [];
    return `[${rows.join()}]`;
  }

  /** JSON by hand: `frame` is a bigint, which SQLite reads as the 64-bit integer it is. */
  #rowText({ load, from, to, frame, rows, bytes, crc32c }: HopTrail, at: number): string {
    this.#number += 1;
    return `[${this.#number},${at},"${load}",${from},${to},${frame.toString()},${rows},${bytes},${crc32c}]`;
  }
}

/** A hop as the store gives it back. */
export function keptHop(cells: unknown): KeptHop {
  const [number, at, load, from, to, frame, rows, bytes, crc32c] = cells as [
    number,
    number,
    LoadId,
    NodeIndex,
    NodeIndex,
    string,
    number,
    number,
    number,
  ];
  return { number, at, load, from, to, frame: BigInt(frame), rows, bytes, crc32c };
}

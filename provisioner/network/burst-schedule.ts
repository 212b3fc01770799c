/**
 * Which bursts may run beside each other: no host is in two at once, since they would share its network and be taken
 * for slower than they are. Pairs of other hosts go on meanwhile.
 */
import type { HostName } from '../../protocol/ids.ts';

/** A burst between two hosts; each burst is one object. */
export interface HostPair {
  readonly from: HostName;
  readonly to: HostName;
}

export class BurstSchedule<Burst extends HostPair> {
  readonly #waiting = new Map<HostName, Set<Burst>>();
  readonly #busy = new Set<HostName>();

  constructor(bursts: readonly Burst[]) {
    for (const burst of bursts)
      for (const host of [burst.from, burst.to]) {
        const waiting = this.#waiting.get(host) ?? new Set();
        this.#waiting.set(host, waiting.add(burst));
      }
  }

  /** Bursts that may start now; they count as begun. */
  begin(): readonly Burst[] {
    const begun: Burst[] = [];
    // Who has most before it goes first: the others fit in beside it.
    const hosts = [...this.#waiting].sort(([, one], [, other]) => other.size - one.size).map(([host]) => host);
    for (const host of hosts) {
      const burst = this.#freeBurstOf(host);
      if (burst === null) continue;
      for (const end of [burst.from, burst.to]) {
        this.#busy.add(end);
        this.#waiting.get(end)?.delete(burst);
      }
      begun.push(burst);
    }
    return begun;
  }

  ended({ from, to }: Burst): void {
    this.#busy.delete(from);
    this.#busy.delete(to);
  }

  #freeBurstOf(host: HostName): Burst | null {
    if (this.#busy.has(host)) return null;
    for (const burst of this.#waiting.get(host) ?? [])
      if (!this.#busy.has(burst.from) && !this.#busy.has(burst.to)) return burst;
    return null;
  }
}

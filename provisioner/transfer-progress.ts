/** How far several hosts' transfers have come together, at what rate, and how long it will take. Pure. */
import type { HostName } from '../protocol/ids.ts';
import { bytesText } from './text-table.ts';

/** The rate is that of the latest few seconds. */
const windowMs = 5_000;

interface Sample {
  readonly atMs: number;
  readonly bytes: number;
}

export class TransferProgress {
  readonly #totals: ReadonlyMap<HostName, number>;
  /** By host and part: bytes that are there. */
  readonly #done = new Map<HostName, Map<string, number>>();
  /** Bytes moved in this run, of all hosts. */
  #moved = 0;
  #samples: Sample[] = [];

  /** @param totals bytes that each host is to have in the end */
  constructor(totals: ReadonlyMap<HostName, number>) {
    this.#totals = totals;
  }

  get totalBytes(): number {
    return [...this.#totals.values()].reduce((sum, total) => sum + total, 0);
  }

  get doneBytes(): number {
    return [...this.#totals.keys()].reduce((sum, host) => sum + this.#doneBy(host), 0);
  }

  /** 0 to 1. */
  get fraction(): number {
    return this.totalBytes === 0 ? 1 : this.doneBytes / this.totalBytes;
  }

  /** A host has so much of a part; it may be less than before. */
  place(host: HostName, part: string, bytes: number): void {
    const parts = this.#done.get(host) ?? new Map<string, number>();
    this.#done.set(host, parts.set(part, bytes));
  }

  /** So much more has gone over the network, or to a disk. */
  move(bytes: number, atMs: number): void {
    this.#moved += bytes;
    const last = this.#samples.at(-1);
    // A few samples a second are enough, however small the pieces are.
    if (last !== undefined && atMs - last.atMs < windowMs / 20) return;
    this.#samples.push({ atMs, bytes: this.#moved });
    this.#samples = this.#samples.filter((sample) => atMs - sample.atMs <= windowMs);
  }

  /** `null` until there is something to tell it from. */
  bytesPerSecond(atMs: number): number | null {
    const [first] = this.#samples;
    if (first === undefined || atMs - first.atMs < windowMs / 20) return null;
    return ((this.#moved - first.bytes) * 1000) / (atMs - first.atMs);
  }

  /** `sending 3.1 MB of 12.4 MB, 1.0 MB/s, 9 s left (ant 25%, bee 10%)` */
  text(verb: string, atMs: number): string {
    const rate = this.bytesPerSecond(atMs);
    const left = rate === null || rate === 0 ? '' : `, ${timeText((this.totalBytes - this.doneBytes) / rate)} left`;
    const hosts = [...this.#totals].map(([host, total]) => {
      const percent = total === 0 ? 100 : Math.floor((100 * this.#doneBy(host)) / total);
      return `${host} ${percent}%`;
    });
    const speed = rate === null ? '' : `, ${bytesText(rate)}/s`;
    return `${verb} ${bytesText(this.doneBytes)} of ${bytesText(this.totalBytes)}${speed}${left} (${hosts.join(', ')})`;
  }

  #doneBy(host: HostName): number {
    return [...(this.#done.get(host)?.values() ?? [])].reduce((sum, bytes) => sum + bytes, 0);
  }
}

function timeText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  return whole < 3600 ? `${Math.ceil(whole / 60)} min` : `${(whole / 3600).toFixed(1)} h`;
}

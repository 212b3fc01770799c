/**
 * A ring of toy stages for tests of what the agent decides: rows in, draws and receipts out, in the order of a real ring.
 *
 * Each stage's KV cache is a running hash for each slot, so a row that is skipped, doubled or out of order changes every
 * later token. The draw is a function of the last stage's hash.
 */
import { assert, present } from '../../protocol/assert.ts';
import type { AdoptItem, BeginItem, EndItem, HopItem, Receipt, RowsItem, RowsPhase } from '../../protocol/hop-items.ts';
import {
  nodeIndex,
  tokenId,
  type Generation,
  type KeptIndex,
  type RequestId,
  type SlotIndex,
  type TokenId,
} from '../../protocol/ids.ts';
import type { FrameDraft } from '../../agent/head/schedule.ts';

/** The running hash behind each row. */
type Lease = number[];

interface Counts {
  prefilled: number;
  decoded: number;
  recomputed: number;
  readonly reused: number;
}

export class ToyRing {
  readonly #stages: number;
  readonly #generation: Generation;
  readonly #leases = new Map<SlotIndex, Lease>();
  readonly #kept = new Map<KeptIndex, Lease>();
  readonly #receipts = new Map<RequestId, Counts>();
  readonly adoptions: AdoptItem[] = [];

  constructor(stages: number, generation: Generation) {
    this.#stages = stages;
    this.#generation = generation;
  }

  get openLeases(): number {
    return this.#leases.size;
  }

  /** Rows of each kept prefix, by index. */
  get keptRows(): readonly (readonly [KeptIndex, number])[] {
    return [...this.#kept].map(([index, { length }]) => [index, length] as const).sort(([one], [other]) => one - other);
  }

  /** What comes back to the head for one frame. */
  run({ items, tokens }: FrameDraft): HopItem[] {
    let at = 0;
    return items.flatMap((item): HopItem[] => {
      if (item.kind !== 'rows') return [this.#apply(item)];
      const rows = tokens.slice(at, at + item.rowCount);
      at += item.rowCount;
      return this.#rows(item, rows);
    });
  }

  #apply(item: Exclude<HopItem, RowsItem>): HopItem {
    switch (item.kind) {
      case 'open':
        assert(!this.#leases.has(item.slot), 'a slot is leased once');
        this.#leases.set(item.slot, []);
        return item;
      case 'close':
        assert(this.#leases.delete(item.slot), 'only a leased slot is closed');
        return item;
      case 'keep': {
        const lease = present(this.#leases.get(item.slot), 'only a leased slot is kept');
        assert(!this.#kept.has(item.kept) && lease.length === item.length, 'all of a lease is kept, in a free place');
        this.#kept.set(item.kept, lease);
        this.#leases.delete(item.slot);
        return item;
      }
      case 'adopt':
        this.#adopt(item);
        return item;
      case 'drop':
        assert(this.#kept.delete(item.kept), 'only a kept prefix is dropped');
        return item;
      case 'begin':
        this.#begin(item);
        return item;
      case 'end':
        return { ...item, receipts: this.#receiptsOf(item) };
      case 'truncate': {
        const lease = this.#leases.get(item.slot);
        assert(lease !== undefined && lease.length >= item.length, 'a lease is cut, not grown');
        lease.length = item.length;
        return item;
      }
      case 'token':
      case 'failed':
      case 'probe':
        return item;
    }
  }

  #adopt(item: AdoptItem): void {
    const { slot, kept, length, takes } = item;
    const prefix = present(this.#kept.get(kept), 'a kept prefix is adopted');
    assert(this.#leases.get(slot)?.length === 0 && prefix.length >= length, 'by an empty session, as far as it goes');
    this.#leases.set(slot, prefix.slice(0, length));
    if (takes) this.#kept.delete(kept);
    this.adoptions.push(item);
  }

  #begin({ request, reusedRows, slot, ran }: BeginItem): void {
    assert(this.#leases.has(slot), 'a request begins in an open session');
    this.#receipts.set(request, { ...ran, recomputed: 0, reused: reusedRows });
  }

  #rows(item: RowsItem, rows: readonly TokenId[]): HopItem[] {
    const lease = this.#leases.get(item.slot);
    const receipt = this.#receipts.get(item.request);
    assert(lease !== undefined && receipt !== undefined, 'rows belong to an open session and a begun request');
    assert(lease.length === item.firstPosition, 'rows come in order, each once');
    for (const token of rows) lease.push(toyHash(lease.at(-1) ?? 1, token));
    receipt[countOf[item.phase]] += rows.length;
    if (!item.samples) return [];
    const { session, request, step } = item;
    return [{ kind: 'token', session, request, step, token: toyToken(lease.at(-1) ?? 1) }];
  }

  #receiptsOf({ request, ran }: EndItem): Receipt[] {
    const counts = this.#receipts.get(request) ?? { recomputed: 0, ...present(ran, 'an end is of a request') };
    return Array.from({ length: this.#stages }, (_, node) => ({
      node: nodeIndex(node),
      sourceGeneration: this.#generation,
      ...counts,
      padding: 0,
      computeUs: 1,
    }));
  }
}

const countOf: Readonly<Record<RowsPhase, 'prefilled' | 'decoded' | 'recomputed'>> = {
  prefill: 'prefilled',
  decode: 'decoded',
  recompute: 'recomputed',
};

const toyHash = (hash: number, token: number): number => (Math.imul(hash, 31) + token + 7) >>> 0;

export const toyToken = (hash: number): TokenId => tokenId(hash % 97);

/** The tokens that an undisturbed ring draws after a prompt. */
export function toyCompletion(prompt: readonly number[], count: number): number[] {
  let hash = 1;
  const feed = (token: number): void => {
    hash = toyHash(hash, token);
  };
  for (const token of prompt) feed(token);
  const drawn: number[] = [];
  while (drawn.length < count) {
    const token = toyToken(hash);
    drawn.push(token);
    feed(token);
  }
  return drawn;
}

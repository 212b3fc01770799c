/**
 * What this stage has run for each request that is going on (S2).
 *
 * After a loss a request's receipt goes on from what the head knows of it; what is run again to fill the KV cache is
 * counted apart. Padding and time are this stage's own, since it last began.
 */
import { unreachable } from '../protocol/assert.ts';
import type { BeginItem, EndItem, FailedWhy, Receipt, RowsItem } from '../protocol/hop-items.ts';
import type { Generation, NodeIndex, RequestId, SessionId } from '../protocol/ids.ts';
import { contradiction } from './lease.ts';

/** Receipts carry microseconds as u32; a request that computes longer (71 minutes) says this. */
const mostComputeUs = 0xffff_ffff;

/** What a stage has run of a request that it has just been told of. */
const nothingYet = { recomputed: 0, padding: 0, computeUs: 0 } as const;

/** A request between its `begin` and its `end`. */
export interface OpenRequest {
  readonly request: RequestId;
  readonly session: SessionId;
  readonly reused: number;
  prefilled: number;
  decoded: number;
  recomputed: number;
  padding: number;
  computeUs: number;
  /** Why it failed on this stage; its rows are dropped from then on. */
  failed: FailedWhy | null;
}

export class ReceiptBook {
  readonly #identity: { readonly node: NodeIndex; readonly generation: Generation };
  readonly #requests = new Map<RequestId, OpenRequest>();

  constructor(identity: { readonly node: NodeIndex; readonly generation: Generation }) {
    this.#identity = identity;
  }

  /** @throws STAGE_PROTOCOL when the request goes on already */
  begin({ request, session, reusedRows, ran }: BeginItem): OpenRequest {
    if (this.#requests.has(request))
      throw contradiction('begin', 'a request that goes on already', { session, request });
    const opened: OpenRequest = { request, session, ...ran, reused: reusedRows, ...nothingYet, failed: null };
    this.#requests.set(request, opened);
    return opened;
  }

  /** @throws STAGE_PROTOCOL when no such request of the session goes on */
  going(request: RequestId, session: SessionId): OpenRequest {
    const found = this.#requests.get(request);
    if (found?.session !== session)
      throw contradiction('request', 'a request that has not begun', { session, request });
    return found;
  }

  goesOnFor(session: SessionId): boolean {
    return [...this.#requests.values()].some((open) => open.session === session);
  }

  count(of: OpenRequest, rows: RowsItem): void {
    switch (rows.phase) {
      case 'prefill':
        of.prefilled += rows.rowCount;
        return;
      case 'decode':
        of.decoded += rows.rowCount;
        return;
      case 'recompute':
        of.recomputed += rows.rowCount;
        return;
      default:
        unreachable(rows.phase);
    }
  }

  /** @throws STAGE_PROTOCOL when no such request of the session goes on, and the item does not say what it ran */
  end({ request, session, ran }: EndItem): Receipt {
    const isUnknown = ran !== null && !this.#requests.has(request);
    const open = isUnknown ? { ...ran, ...nothingYet } : this.going(request, session);
    const { prefilled, decoded, reused, recomputed, padding, computeUs } = open;
    this.#requests.delete(request);
    return {
      node: this.#identity.node,
      sourceGeneration: this.#identity.generation,
      ...{ prefilled, decoded, reused, recomputed, padding },
      computeUs: Math.min(Math.round(computeUs), mostComputeUs),
    };
  }
}

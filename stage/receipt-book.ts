/** What this stage has run for each request that is going on (S2). */
import type { BeginItem, FailedWhy, Receipt, RowsItem } from '../protocol/hop-items.ts';
import type { Generation, NodeIndex, RequestId, SessionId } from '../protocol/ids.ts';
import { contradiction } from './lease.ts';

/** Receipts carry microseconds as u32; a request that computes longer (71 minutes) says this. */
const mostComputeUs = 0xffff_ffff;

/** A request between its `begin` and its `end`. */
export interface OpenRequest {
  readonly request: RequestId;
  readonly session: SessionId;
  readonly reused: number;
  prefilled: number;
  decoded: number;
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
  begin({ request, session, reusedRows }: BeginItem): OpenRequest {
    if (this.#requests.has(request))
      throw contradiction('begin', 'a request that goes on already', { session, request });
    const counts = { prefilled: 0, decoded: 0, padding: 0, computeUs: 0 };
    const opened: OpenRequest = { request, session, reused: reusedRows, ...counts, failed: null };
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
    if (rows.phase === 'prefill') of.prefilled += rows.rowCount;
    else of.decoded += rows.rowCount;
  }

  /** @throws STAGE_PROTOCOL when no such request of the session goes on */
  end(request: RequestId, session: SessionId): Receipt {
    const { prefilled, decoded, reused, padding, computeUs } = this.going(request, session);
    this.#requests.delete(request);
    return {
      node: this.#identity.node,
      sourceGeneration: this.#identity.generation,
      ...{ prefilled, decoded, reused, recomputed: 0, padding },
      computeUs: Math.min(Math.round(computeUs), mostComputeUs),
    };
  }
}

/** KV leases: which session holds which sequence of this stage's KV cache, and how many of its positions are filled. */
import { P4Error } from '../protocol/errors.ts';
import type { SessionId, SlotIndex } from '../protocol/ids.ts';

export interface Lease {
  readonly session: SessionId;
  /** Rows of the session that are in the KV cache: the position of its next row. */
  length: number;
}

export class LeaseTable {
  readonly #leases: (Lease | null)[];

  /** @param slots how many sessions may be open at once */
  constructor(slots: number) {
    this.#leases = Array.from({ length: slots }, () => null);
  }

  /** Rows of all sessions together. */
  get usedCells(): number {
    return this.#leases.reduce((sum, lease) => sum + (lease?.length ?? 0), 0);
  }

  /** @throws STAGE_PROTOCOL when another session holds the slot, or there is no such slot */
  open(session: SessionId, slot: SlotIndex): void {
    if (slot >= this.#leases.length) throw contradiction('open', 'a slot that this stage lacks', { session, slot });
    if (this.#leases[slot] !== null) throw contradiction('open', 'a slot that is taken', { session, slot });
    this.#leases[slot] = { session, length: 0 };
  }

  /** @throws STAGE_PROTOCOL when the session does not hold the slot */
  held(session: SessionId, slot: SlotIndex): Lease {
    const lease = this.#leases[slot] ?? null;
    if (lease?.session !== session) throw contradiction('lease', 'a session without this slot', { session, slot });
    return lease;
  }

  /** @throws STAGE_PROTOCOL when the session does not hold the slot */
  close(session: SessionId, slot: SlotIndex): void {
    this.held(session, slot);
    this.#leases[slot] = null;
  }
}

/** What the agent says contradicts what it said before: whose mistake it is cannot be told, so the stage ends. */
export function contradiction(item: string, found: string, where: Readonly<Record<string, number>>): P4Error {
  return new P4Error('STAGE_PROTOCOL', { item, found, ...where });
}

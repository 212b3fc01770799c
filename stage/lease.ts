/**
 * KV leases: which session holds which sequence of this stage's KV cache, and how many of its positions are filled; and the
 * prefixes that sessions left behind, each in a sequence of its own.
 */
import { P4Error } from '../protocol/errors.ts';
import type { AdoptItem, DropItem, KeepItem } from '../protocol/hop-items.ts';
import type { SessionId, SlotIndex } from '../protocol/ids.ts';

export interface Lease {
  readonly session: SessionId;
  /** Rows of the session that are in the KV cache: the position of its next row. */
  length: number;
}

export class LeaseTable {
  readonly #leases: (Lease | null)[];
  /** By index: rows of a kept prefix. */
  readonly #kept: (number | null)[];

  /** How many sessions may be open, and how many prefixes kept, at once. */
  constructor({ sessions, keptPrefixes }: { readonly sessions: number; readonly keptPrefixes: number }) {
    this.#leases = Array.from({ length: sessions }, () => null);
    this.#kept = Array.from({ length: keptPrefixes }, () => null);
  }

  /** Rows of all sessions together. */
  get usedCells(): number {
    return this.#leases.reduce((sum, lease) => sum + (lease?.length ?? 0), 0);
  }

  /** Rows of all kept prefixes together. */
  get keptCells(): number {
    return this.#kept.reduce<number>((sum, length) => sum + (length ?? 0), 0);
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

  /**
   * The session's rows are a kept prefix from now on.
   * @returns how many they are: fewer than the head thinks where some were dropped here
   * @throws STAGE_PROTOCOL when the session does not hold the slot, or the prefix's place is not free
   */
  keep({ session, slot, kept, length }: KeepItem): number {
    const lease = this.held(session, slot);
    if (this.#kept[kept] !== null) throw contradiction('keep', 'a place that is not free', { session, kept });
    const rows = Math.min(length, lease.length);
    this.#leases[slot] = null;
    this.#kept[kept] = rows;
    return rows;
  }

  /** @throws STAGE_PROTOCOL when the session has rows already, or the prefix lacks them */
  adopt({ session, slot, kept, length, takes }: AdoptItem): void {
    const lease = this.held(session, slot);
    if (lease.length > 0) throw contradiction('adopt', 'a session with rows', { session, slot });
    const rows = this.#kept[kept] ?? null;
    if (rows === null || rows < length) throw contradiction('adopt', 'a prefix without these rows', { kept, length });
    lease.length = length;
    if (takes) this.#kept[kept] = null;
  }

  /** @throws STAGE_PROTOCOL when there is no such prefix */
  drop({ kept }: DropItem): void {
    if ((this.#kept[kept] ?? null) === null) throw contradiction('drop', 'a prefix that is not there', { kept });
    this.#kept[kept] = null;
  }
}

/** What the agent says contradicts what it said before: whose mistake it is cannot be told, so the stage ends. */
export function contradiction(item: string, found: string, where: Readonly<Record<string, number>>): P4Error {
  return new P4Error('STAGE_PROTOCOL', { item, found, ...where });
}

/**
 * When rows of ended sessions are kept, adopted and dropped.
 *
 * The stages have cells for every open session at its longest. Kept rows lie in those that open sessions do not need yet: at
 * each point of the stream of items, rows of sessions and kept rows together are at most that many, so no session ever misses
 * a cell. Dropped by the head's word in that stream, they are gone on every stage before the rows that need their room.
 */
import type { LeaseItem, KeepItem } from '../../protocol/hop-items.ts';
import type { KeptIndex, TokenId } from '../../protocol/ids.ts';
import { marksOf, type HeadState, type RowMarks, type SessionState } from './head-state.ts';
import {
  keeping,
  keptOnAll,
  keptRows,
  longestBeginning,
  shrunk,
  used,
  without,
  type KeptPrefixes,
} from './kept-prefixes.ts';

/** What the stages are told, and what the head knows then. */
export interface Reuse {
  readonly kept: KeptPrefixes;
  readonly items: readonly LeaseItem[];
}

const dropsOf = (dropped: readonly KeptIndex[]): LeaseItem[] => dropped.map((kept) => ({ kind: 'drop', kept }));

/** A session's lease ends: its rows are kept where they may be of use, else they are gone. */
export function leaseEnded({ kept: former }: HeadState, session: SessionState): Reuse {
  const { id, slot, owner, history, rows, sentRows } = session;
  const close: LeaseItem = { kind: 'close', session: id, slot };
  if (owner === null) return { kept: former, items: [close] };
  const leaving = {
    ...{ session: id, owner },
    tokens: history.tokens.slice(0, sentRows),
    alone: rows.alone.slice(0, sentRows),
  };
  const { kept, index, dropped } = keeping(former, leaving);
  const end: LeaseItem = index === null ? close : { kind: 'keep', session: id, slot, kept: index, length: sentRows };
  return { kept, items: [...dropsOf(dropped), end] };
}

/** What a session that has no rows yet begins with. */
export interface Adoption extends Reuse {
  readonly rows: RowMarks;
}

/**
 * The rows that a prompt need not run; `null` where there are none.
 *
 * The prefix stays for others where there is room for both. Room is made for that at the cost of prefixes that were used
 * longer ago, but not for a prompt that goes on from the prefix's end: when its session ends, that leaves all of it again.
 * Without room the prefix becomes the session's own.
 */
export function adoption(head: HeadState, session: SessionState, prompt: readonly TokenId[]): Adoption | null {
  const { kept } = head;
  if (session.owner === null || session.history.length > 0 || session.sentRows > 0) return null;
  const found = longestBeginning(kept, session.owner, prompt);
  if (found === null) return null;
  const { prefix, length } = found;
  const free = freeRows(head);
  const shared = shrunk(kept, keptRows(kept) + free - length);
  const goesOn = length === prefix.tokens.length;
  const takes = length > free && (goesOn || !shared.kept.entries.includes(prefix));
  const adopt: LeaseItem = {
    kind: 'adopt',
    session: session.id,
    slot: session.slot,
    kept: prefix.index,
    length,
    takes,
  };
  return {
    kept: takes ? without(kept, prefix) : used(shared.kept, prefix),
    items: takes ? [adopt] : [...dropsOf(shared.dropped), adopt],
    rows: marksOf(prefix.alone.slice(0, length)),
  };
}

/** Makes room for rows that are about to run. */
export function roomMade(head: HeadState, rows: number): Reuse {
  if (head.kept.entries.length === 0) return { kept: head.kept, items: [] };
  const { kept, dropped } = shrunk(head.kept, keptRows(head.kept) + freeRows(head) - rows);
  return { kept, items: dropsOf(dropped) };
}

/** A `keep` has been all the way round. */
export function keepReturned(head: HeadState, item: KeepItem): HeadState {
  const { kept, dropped } = keptOnAll(head.kept, item);
  return { ...head, kept, outbox: [...head.outbox, ...dropsOf(dropped)] };
}

/** Cells that neither sessions nor kept prefixes fill. Rows that share theirs count for both. */
function freeRows({ contextTokens, slots, sessions, kept }: HeadState): number {
  let rows = contextTokens * slots.length - keptRows(kept);
  for (const { sentRows } of sessions.values()) rows -= sentRows;
  return rows;
}

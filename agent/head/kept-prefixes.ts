/**
 * What ended sessions left on every stage: rows that a session which begins alike need not run again.
 *
 * Pure data, the latest used last. A prefix is adopted by sessions of its owner alone, and only once every stage has said
 * that it has all its rows.
 */
import { keptIndex, type KeptIndex, type SessionId, type TokenId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';

/** What a session leaves. */
export interface Leaving {
  /** Whose rows they are. No session's id is ever used again: it tells one prefix from a later one with its index. */
  readonly session: SessionId;
  /** Only sessions with the same may adopt it. */
  readonly owner: string;
  /** One for each row. */
  readonly tokens: readonly TokenId[];
  /** Of each row, whether it ran in a frame of its own (R3). */
  readonly alone: readonly boolean[];
}

export interface KeptPrefix extends Leaving {
  readonly index: KeptIndex;
  /** Whether every stage has said that it has these rows. */
  readonly isWhole: boolean;
}

export interface KeptPrefixes {
  readonly most: number;
  /** The one that was used longest ago first. */
  readonly entries: readonly KeptPrefix[];
}

export const noneKept = (most: number): KeptPrefixes => ({ most, entries: [] });

/** Rows of all of them; those that a session shares with its prefix count twice. */
export const keptRows = ({ entries }: KeptPrefixes): number =>
  entries.reduce((sum, { tokens }) => sum + tokens.length, 0);

export interface Keeping {
  readonly kept: KeptPrefixes;
  /** Where the rows go; `null` when they are not kept. */
  readonly index: KeptIndex | null;
  /** What makes way for them. */
  readonly dropped: readonly KeptIndex[];
}

/** Takes in what a session leaves, unless it is too short, or the beginning of what is there already. */
export function keeping(kept: KeptPrefixes, leaving: Leaving): Keeping {
  const { most, entries } = kept;
  if (most === 0 || leaving.tokens.length < limits.adoptedRowsLeast) return { kept, index: null, dropped: [] };
  const longer = entries.find((entry) => isBeginning(leaving, entry));
  if (longer !== undefined) return { kept: used(kept, longer), index: null, dropped: [] };
  const others = entries.filter((entry) => !isBeginning(entry, leaving));
  const stays = others.slice(Math.max(0, others.length - most + 1));
  const index = freeIndex(stays);
  return {
    kept: { most, entries: [...stays, { ...leaving, index, isWhole: false }] },
    index,
    dropped: entries.filter((entry) => !stays.includes(entry)).map((entry) => entry.index),
  };
}

/** A `keep` is home: the rows are there for others, or some of them were lost on a stage and all are dropped. */
export function keptOnAll(
  kept: KeptPrefixes,
  { session, length }: { readonly session: SessionId; readonly length: number },
): { readonly kept: KeptPrefixes; readonly dropped: readonly KeptIndex[] } {
  const entry = kept.entries.find((one) => one.session === session);
  if (entry === undefined || entry.isWhole) return { kept, dropped: [] };
  if (length < entry.tokens.length) return { kept: without(kept, entry), dropped: [entry.index] };
  const entries = kept.entries.map((one) => (one === entry ? { ...entry, isWhole: true } : one));
  return { kept: { ...kept, entries }, dropped: [] };
}

export interface Beginning {
  readonly prefix: KeptPrefix;
  /** Its first rows, which the prompt begins with. */
  readonly length: number;
}

/** The longest beginning of a prompt that is there. The prompt's last row runs in any case: its token is drawn from it. */
export function longestBeginning(
  { entries }: KeptPrefixes,
  owner: string,
  prompt: readonly TokenId[],
): Beginning | null {
  let longest: Beginning | null = null;
  for (const prefix of entries) {
    if (prefix.owner !== owner || !prefix.isWhole) continue;
    const length = Math.min(commonLength(prefix.tokens, prompt), prompt.length - 1);
    if (length >= limits.adoptedRowsLeast && length >= (longest?.length ?? 0)) longest = { prefix, length };
  }
  return longest;
}

/** The prefix was adopted, and stays. */
export const used = (kept: KeptPrefixes, prefix: KeptPrefix): KeptPrefixes => ({
  ...kept,
  entries: [...without(kept, prefix).entries, prefix],
});

export const without = (kept: KeptPrefixes, prefix: KeptPrefix): KeptPrefixes => ({
  ...kept,
  entries: kept.entries.filter((entry) => entry !== prefix),
});

/** Those that were used longest ago go, until the others have `most` rows together. */
export function shrunk(
  kept: KeptPrefixes,
  most: number,
): { readonly kept: KeptPrefixes; readonly dropped: readonly KeptIndex[] } {
  let rows = keptRows(kept);
  const dropped: KeptIndex[] = [];
  for (const { tokens, index } of kept.entries) {
    if (rows <= most) break;
    rows -= tokens.length;
    dropped.push(index);
  }
  return dropped.length === 0
    ? { kept, dropped }
    : { kept: { ...kept, entries: kept.entries.slice(dropped.length) }, dropped };
}

function freeIndex(entries: readonly KeptPrefix[]): KeptIndex {
  let index = 0;
  while (entries.some((entry) => entry.index === index)) index++;
  return keptIndex(index);
}

/** Whether one of two prefixes of an owner is all in the other. */
const isBeginning = (shorter: Leaving, longer: Leaving): boolean =>
  shorter.owner === longer.owner && commonLength(shorter.tokens, longer.tokens) === shorter.tokens.length;

function commonLength(one: readonly TokenId[], other: readonly TokenId[]): number {
  const most = Math.min(one.length, other.length);
  let length = 0;
  while (length < most && one[length] === other[length]) length++;
  return length;
}

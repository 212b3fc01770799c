/** The guards that kept prefixes rest on. */
import type { Mutation } from './mutation.ts';

const kept = 'agent/head/kept-prefixes.js';
const reuse = 'agent/head/prefix-reuse.js';

export const keptMutations: readonly Mutation[] = [
  {
    name: 'kept: only of the same owner',
    file: kept,
    guard: 'prefix.owner !== owner || !prefix.isWhole',
    instead: '!prefix.isWhole',
  },
  {
    name: 'kept: only what all stages have',
    file: kept,
    guard: 'prefix.owner !== owner || !prefix.isWhole',
    instead: 'prefix.owner !== owner',
  },
  {
    name: 'kept: a stage says what it lacks',
    file: 'stage/lease.js',
    guard: 'Math.min(length, lease.length)',
    instead: 'length',
  },
  {
    name: 'kept: what a stage lacks is dropped',
    file: kept,
    guard: 'if (length < entry.tokens.length)',
    instead: 'if (false)',
  },
  {
    name: 'kept: the last row of a prompt runs',
    file: kept,
    guard: 'commonLength(prefix.tokens, prompt), prompt.length - 1',
    instead: 'commonLength(prefix.tokens, prompt), prompt.length',
  },
  {
    name: 'kept: no row more than they have in common',
    file: kept,
    guard: 'while (length < most && one[length] === other[length])\n        length++;\n    return length;',
    instead:
      'while (length < most && one[length] === other[length])\n        length++;\n    return Math.min(most, length + 1);',
  },
  {
    name: 'kept: what makes way is dropped',
    file: reuse,
    guard: 'items: [...dropsOf(dropped), end]',
    instead: 'items: [end]',
  },
  {
    name: 'kept: rows that run make room',
    file: reuse,
    guard: 'keptRows(head.kept) + freeRows(head) - rows',
    instead: 'Infinity',
  },
  {
    name: 'kept: a copy has room',
    file: reuse,
    guard: 'const takes = length > free && ',
    instead: 'const takes = false && ',
  },
  {
    name: 'kept: what is taken is nobody else’s',
    file: reuse,
    guard: 'takes ? without(kept, prefix)',
    instead: 'takes ? used(kept, prefix)',
  },
  {
    name: 'kept: a loss forgets it',
    file: 'agent/head/recovery.js',
    guard: 'kept: noneKept(head.kept.most), outbox',
    instead: 'outbox',
  },
  {
    name: 'kept: only rows that are on the stages',
    file: reuse,
    guard: 'tokens: history.tokens.slice(0, sentRows)',
    instead: 'tokens: history.tokens.slice(0, rows.length)',
  },
  {
    name: 'kept: shapes come along (R3)',
    file: reuse,
    guard: 'marksOf(prefix.alone.slice(0, length))',
    instead: 'marksOf(prefix.alone.slice(0, length).map(() => false))',
  },
  {
    name: 'kept: adopted rows are remembered (S2)',
    file: 'agent/head/memory.js',
    guard: 'adopted === undefined ? session.rows : marksOfRuns(adopted)',
    instead: 'session.rows',
  },
  {
    name: 'kept: a failure gives adopted rows back',
    file: 'agent/head/requests.js',
    guard: 'Math.min(began.rows, began.tokens)',
    instead: 'began.rows',
  },
  {
    name: 'rows that a stage dropped behind an end run again',
    file: 'agent/head/requests.js',
    guard: 'unchangedHead(rowsMissing(head, request))',
    instead: 'unchangedHead(head)',
  },
];

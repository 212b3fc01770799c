/** Words for a POSIX shell. */
import { assert } from '../../protocol/assert.ts';

/** `word` as one word of a script for `sh`, whatever it contains; a NUL, which no argument can hold, is a bug. */
export function shellQuoted(word: string): string {
  assert(!word.includes('\0'), 'a shell word has no NUL');
  return /^[A-Za-z0-9_@%+:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Words of a command line, each quoted. */
export const shellWords = (...words: readonly string[]): string => words.map(shellQuoted).join(' ');

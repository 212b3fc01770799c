/**
 * What does not belong in a committed file: notes to oneself, traces of the machine it was written on, where packages came
 * from, how the project was made. The words are put together from parts, so that this file does not hold them itself.
 */
import { matches, type Finding, type HouseFile } from './house-files.ts';

interface Unwanted {
  readonly pattern: RegExp;
  readonly says: string;
  /** Whether a file may hold it all the same. */
  readonly exempt?: (path: string) => boolean;
}

const anyOf = (...words: readonly (readonly string[])[]): string => words.map((parts) => parts.join('')).join('|');

const unwanted: readonly Unwanted[] = [
  {
    pattern: new RegExp(`\\b(${anyOf(['TO', 'DO'], ['FIX', 'ME'], ['X', 'XX'])})\\b`, 'g'),
    says: 'a note to oneself: do it, or file it',
  },
  {
    pattern: new RegExp(`(?<![\\w.~-])/(${anyOf(['wo', 'rk'], ['t', 'mp'])})(?=/|\\b)(?!-)`, 'g'),
    says: 'a path of the machine it was written on; tests take os.tmpdir()',
  },
  { pattern: new RegExp(`\\.\\./(${anyOf(['sha', 'red'])})/`, 'g'), says: 'a folder that a checkout does not have' },
  {
    pattern: new RegExp(
      anyOf(['registry', '\\.npmjs'], ['npm', 'js\\.(org|com)'], ['yarn', 'pkg\\.com'], ['npm', 'mirror']),
      'gi',
    ),
    says: 'where packages came from',
  },
  {
    pattern: /"resolved":/g,
    says: 'where packages came from',
    exempt: (path) => path !== 'package-lock.json',
  },
  {
    pattern: new RegExp(
      `\\b(${anyOf(['anthro', 'pic'], ['cla', 'ude'], ['co', 'pilot'], ['chat', 'gpt'], ['co-authored', '-by'], ['sub', '-?agents?'])})\\b`,
      'gi',
    ),
    says: 'how the project was made',
  },
  { pattern: new RegExp(`\\b(${anyOf(['A', 'I'])})\\b`, 'g'), says: 'how the project was made' },
  { pattern: new RegExp(`\\b(${anyOf(['iss', 'ue #?\\d+'])})`, 'gi'), says: 'how the project was made' },
];

export function unwantedWords(files: readonly HouseFile[]): readonly Finding[] {
  return files.flatMap((file) =>
    unwanted
      .filter(({ exempt }) => exempt?.(file.path) !== true)
      .flatMap(({ pattern, says }) =>
        matches(file, pattern).map(({ path, line, found }) => ({ path, line, says: `"${found}": ${says}` })),
      ),
  );
}

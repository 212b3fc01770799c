/** Which of the file systems that deploy writes to is full: asked of a host after a script there found no space. */
import { hostLayout } from '../host-layout.ts';
import { shellWords } from './shell-quoting.ts';

export interface FolderSpace {
  /** Absolute. */
  readonly folder: string;
  readonly freeBytes: number;
}

/** @param said what the step said last: paths that it names are looked at, too */
export function spaceScript(said: readonly string[]): string {
  const own = [hostLayout.programs, hostLayout.configuration, hostLayout.runtime];
  const folders = new Set([...own, ...said.flatMap(namedPaths)]);
  return `export LC_ALL=C
for folder in ${shellWords(...folders)}; do
  there=$folder
  while [ ! -d "$there" ]; do there=$(dirname "$there"); done
  free=$(df -Pk "$there" | { read -r _; read -r _ _ _ free _; echo "$free"; })
  echo "$free $folder"
done
`;
}

/** Absolute paths between quotation marks, as coreutils write them. */
const namedPaths = (line: string): readonly string[] =>
  [...line.matchAll(/['"‘](\/[^'"’\0]*)['"’]/gu)].map(([, path = '/']) => path);

/** The folder with the least room, the first of several; `null` where none was told. */
export function fullestFolder(text: string): FolderSpace | null {
  const found = text.split('\n').flatMap((line): FolderSpace[] => {
    const [, kib, folder] = /^(\d+) (\/.*)$/.exec(line) ?? [];
    return kib === undefined || folder === undefined ? [] : [{ folder, freeBytes: Number(kib) * 1024 }];
  });
  return found.reduce<FolderSpace | null>(
    (least, one) => (least === null || one.freeBytes < least.freeBytes ? one : least),
    null,
  );
}

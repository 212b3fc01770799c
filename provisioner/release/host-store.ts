/**
 * What a host has of releases: asked with one script, which changes nothing, and told as values.
 *
 * In `/opt/p4`: `objects/<sha256>` are files by content, `releases/<id>/` trees of hard links to them, `current` a link to
 * the release in use, `incoming/` what is on its way. Every object has one fixed modification time: one that was written to
 * afterwards has another, so that a look at names, sizes, modes and times tells without reading what has changed. (Whoever
 * as root sets the time back as well is not found out.)
 *
 * The scripts want a POSIX shell, coreutils and `find`; `gzip` only where compression pays.
 */
import { P4Error } from '../../protocol/errors.ts';
import { runHostScript } from '../ssh/host-script.ts';
import { shellQuoted } from '../ssh/shell-quoting.ts';
import type { Session } from '../ssh/session.ts';

/** A host's folder for releases. */
export interface StorePlace {
  readonly session: Session;
  /** Absolute; `/opt/p4` on a host. */
  readonly root: string;
  readonly signal?: AbortSignal | undefined;
}

/** A file, folder or link, as `stat` sees it. */
export interface StoreEntry {
  /** Relative to where it was looked for. */
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'other';
  /** Permission bits. */
  readonly mode: number;
  readonly bytes: number;
  /** Seconds since 1970. */
  readonly modifiedSeconds: number;
  /** `user:group`, as numbers. */
  readonly owner: string;
  readonly inode: string;
}

export interface HostStore {
  /** Whom files belong to that the session makes. */
  readonly owner: string;
  readonly hasGzip: boolean;
  /** Free bytes where the folder is, or will be. */
  readonly freeBytes: number;
  readonly objects: readonly StoreEntry[];
  readonly incoming: readonly StoreEntry[];
  readonly releases: readonly InstalledRelease[];
  /** Id of the release in use. */
  readonly current: string | null;
  /** What is in the release that was asked about, the folder itself (path `.`) included; nothing where it is not there. */
  readonly tree: readonly StoreEntry[];
}

export interface InstalledRelease {
  readonly id: string;
  /** When it was put there, seconds since 1970. */
  readonly sinceSeconds: number;
}

/** Modification time of every file of a release, in seconds since 1970; `touch -t` writes it as `fixedTimeText`. */
export const fixedTimeSeconds = 1_000_000_000;
export const fixedTimeText = '200109090146.40';

const listing = `-exec stat -c "$what %f %s %Y %u:%g %i %n" {} +`;
const endMark = 'end';

/** @param tree name below `releases/` of the folder that is listed */
export const surveyScript = (root: string, tree: string): string => `export LC_ALL=C
root=${shellQuoted(root)} tree=${shellQuoted(tree)}
look() { what=$1; if [ -d "$2" ]; then (cd "$2" && find . $3 ${listing}); fi; }
echo "owner $(id -u):$(id -g)"
if command -v gzip >/dev/null 2>&1; then echo gzip; fi
there=$root
while [ ! -d "$there" ]; do there=$(dirname "$there"); done
echo "free $(df -Pk "$there" | { read -r _; read -r _ _ _ free _; echo "$free"; })"
if cd "$root" 2>/dev/null; then
  if [ -L current ]; then echo "current $(readlink current)"; fi
  look object objects '-type f'
  look incoming incoming '-type f'
  look release releases '-maxdepth 1 -type d'
  look entry "releases/$tree" ''
fi
echo ${endMark}
`;

/** @throws HOST_FACTS_UNREADABLE; those of `runHostScript` */
export async function surveyStore({ session, root, signal }: StorePlace, tree: string): Promise<HostStore> {
  const script = surveyScript(root, tree);
  const order = { script, ...(signal === undefined ? {} : { signal }) };
  const store = parseStore(await runHostScript(session, 'look at the releases', order));
  if (store === null) {
    throw new P4Error('HOST_FACTS_UNREADABLE', { host: session.host, what: 'the files of its releases' });
  }
  return store;
}

/** `null` where the text is no whole answer. */
export function parseStore(text: string): HostStore | null {
  const lines = text.split('\n').filter((line) => line !== '');
  if (lines.at(-1) !== endMark) return null;
  const words = lines.slice(0, -1).map((line): [string, string] => {
    const space = line.indexOf(' ');
    return space === -1 ? [line, ''] : [line.slice(0, space), line.slice(space + 1)];
  });
  const all = (what: string): string[] => words.filter(([word]) => word === what).map(([, rest]) => rest);
  const [owner, freeKib, link] = [all('owner')[0], all('free')[0], all('current')[0]];
  if (owner === undefined || freeKib === undefined) return null;
  const releases = entries(all('release')).filter(({ path }) => isReleaseId(path));
  return {
    owner,
    hasGzip: words.some(([word]) => word === 'gzip'),
    freeBytes: Number(freeKib) * 1024,
    objects: entries(all('object')),
    incoming: entries(all('incoming')),
    releases: releases.map(({ path, modifiedSeconds }) => ({ id: path, sinceSeconds: modifiedSeconds })),
    current: /^releases\/([0-9a-f]{16})$/.exec(link ?? '')?.[1] ?? null,
    tree: entries(all('entry')),
  };
}

export const isReleaseId = (text: string): boolean => /^[0-9a-f]{16}$/.test(text);

function entries(lines: readonly string[]): StoreEntry[] {
  return lines.flatMap((line) => {
    const [, mode, bytes, time, owner, inode, name] =
      /^([0-9a-f]+) (\d+) (-?\d+) (\d+:\d+) (\d+) (.+)$/.exec(line) ?? [];
    // The rest of a name with a line break: its first part is told already.
    if (mode === undefined || owner === undefined || inode === undefined || name === undefined) return [];
    const rawMode = parseInt(mode, 16);
    return [
      {
        path: name.replace(/^\.\//, ''),
        kind: kinds.get(rawMode & 0o170000) ?? 'other',
        mode: rawMode & 0o7777,
        bytes: Number(bytes),
        modifiedSeconds: Number(time),
        owner,
        inode,
      },
    ];
  });
}

/** By the type bits of `st_mode`. */
const kinds: ReadonlyMap<number, StoreEntry['kind']> = new Map([
  [0o100000, 'file'],
  [0o040000, 'folder'],
]);

/** What a trace of system calls (strace -f -y) says of listings, and of looks at one folder. Pure. */

export interface SystemCalls {
  /** All calls in the trace. */
  readonly calls: number;
  /** Listings of directories, whichever they are. */
  readonly listings: readonly string[];
  /** Looks at the folder or at what is in it, by its path: `stat`, `access` and their kin. */
  readonly looks: readonly string[];
  /** Looks at a file in the folder that is open already: they cost the same whatever the folder holds. */
  readonly looksAtOpenFiles: number;
  /** Files in the folder that were opened, or folders. */
  readonly opened: readonly string[];
  /** Writes to files in the folder, and their syncs: a trace without any has seen nothing. */
  readonly writes: number;
  readonly syncs: number;
}

const listing: ReadonlySet<string> = new Set(['getdents', 'getdents64', 'readdir']);
const looking: ReadonlySet<string> = new Set(
  ['stat', 'lstat', 'stat64', 'lstat64', 'newfstatat', 'fstatat64', 'statx', 'statfs', 'statfs64'].concat([
    'access',
    'faccessat',
    'faccessat2',
    'readlink',
    'readlinkat',
    'inotify_add_watch',
  ]),
);
const lookingAtOpenFiles: ReadonlySet<string> = new Set(['fstat', 'fstat64', 'fstatfs', 'fstatfs64']);
const opening: ReadonlySet<string> = new Set(['open', 'openat', 'openat2', 'creat']);
const writing: ReadonlySet<string> = new Set(['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2']);
const syncing: ReadonlySet<string> = new Set(['fsync', 'fdatasync', 'sync_file_range']);

/** What `strace` is to trace. A `?` lets pass a name that this machine's kernel does not have. */
export const tracedCalls: readonly string[] = [
  ...[...listing, ...looking, ...lookingAtOpenFiles, ...opening, ...writing, ...syncing].map((name) => `?${name}`),
];

/** `1234 fdatasync(21</journal/journal.sqlite-wal> <unfinished ...>`: a call's beginning, its arguments with it. */
const beginning = /^(?:\[pid +)?\d+\]? +(\w+)\((.*)$/;

/** @param folder absolute, links resolved */
export function readTrace(lines: readonly string[], folder: string): SystemCalls {
  const found = lines.flatMap((line) => {
    const [, name, words] = beginning.exec(line) ?? [];
    return name === undefined || words === undefined ? [] : [{ name, line, isHere: names(words, folder) }];
  });
  const here = (kinds: ReadonlySet<string>): readonly string[] =>
    found.filter(({ name, isHere }) => isHere && kinds.has(name)).map(({ line }) => line);
  const isOfOpenFile = (line: string): boolean => line.includes('AT_EMPTY_PATH');
  const looks = here(looking);
  return {
    calls: found.length,
    listings: found.filter(({ name }) => listing.has(name)).map(({ line }) => line),
    looks: looks.filter((line) => !isOfOpenFile(line)),
    looksAtOpenFiles: here(lookingAtOpenFiles).length + looks.filter(isOfOpenFile).length,
    opened: here(opening),
    writes: here(writing).length,
    syncs: here(syncing).length,
  };
}

/** Whether arguments name the folder or what is in it: as a path `"…"`, or as an open file `21<…>`. */
function names(words: string, folder: string): boolean {
  for (let at = words.indexOf(folder); at >= 0; at = words.indexOf(folder, at + 1)) {
    const before = words[at - 1] ?? '';
    const after = words[at + folder.length] ?? '';
    if ('"<'.includes(before) && '/">'.includes(after) && before !== '' && after !== '') return true;
  }
  return false;
}

/**
 * Whether a host can run a release's programs: its C library is new enough, and the libraries beside it are either its own
 * or can be those in the release's `lib/` (`native-needs.ts`).
 */
import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import { runHostScript } from '../ssh/host-script.ts';
import { shellQuoted } from '../ssh/shell-quoting.ts';
import type { StorePlace } from './host-store.ts';
import { isOlder, versionText, type NativeNeeds, type Version } from './native-needs.ts';

export interface HostLibraries {
  /** `null` where the C library is not glibc. */
  readonly glibc: Version | null;
  /** By the library's name. */
  readonly libraries: ReadonlyMap<string, LibraryState>;
}

/** `old`: it lacks a version of its symbols that the release wants. */
export type LibraryState = 'own' | 'old' | 'absent';

/** Where the dynamic linker looks, beside what its cache names. */
const folders = '/lib64 /usr/lib64 /lib/*-linux-gnu /usr/lib/*-linux-gnu /lib /usr/lib';

/** Prints `glibc 2.36` and a line for each library; a version of symbols is found by its name in the file. */
export const librariesScript = ({ libraries }: NativeNeeds): string => `export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
getconf GNU_LIBC_VERSION 2>/dev/null
cache=$(ldconfig -p 2>/dev/null | grep -F ${libraries.map(({ name }) => `-e ${shellQuoted(name)}`).join(' ')})
look() {
  name=$1; shift; patterns=; file=
  case $cache in *"	$name ("*) file=\${cache#*"	$name ("}; file=\${file#*=> }; file=\${file%%
*} ;; esac
  if [ ! -e "$file" ]; then
    for folder in ${folders}; do if [ -e "$folder/$name" ]; then file=$folder/$name; break; fi; done
  fi
  if [ ! -e "$file" ]; then echo "$name absent"; return; fi
  for version; do patterns="$patterns -e $version"; done
  if [ "$patterns" ]; then found=$(grep -oaF $patterns "$file"); fi
  for version; do case $found in *"$version"*) ;; *) echo "$name old"; return ;; esac; done
  echo "$name own"
}
${libraries.map(({ name, versions }) => ['look', ...[name, ...versions].map(shellQuoted)].join(' ')).join('\n')}
exit 0
`;

/** @throws those of `runHostScript` */
export async function askLibraries({ session, signal }: StorePlace, needs: NativeNeeds): Promise<HostLibraries> {
  const order = { script: librariesScript(needs), ...(signal === undefined ? {} : { signal }) };
  return parseLibraries(await runHostScript(session, 'look at its libraries', order));
}

export function parseLibraries(text: string): HostLibraries {
  const [, major, minor] = /^glibc (\d+)\.(\d+)/m.exec(text) ?? [];
  const lines = [...text.matchAll(/^(\S+) (own|old|absent)$/gm)];
  const libraries = new Map(
    lines.map(([, name = '', state]): [string, LibraryState] => [
      name,
      state === 'own' || state === 'old' ? state : 'absent',
    ]),
  );
  const isGlibc = major !== undefined && minor !== undefined;
  return { glibc: isGlibc ? { major: Number(major), minor: Number(minor) } : null, libraries };
}

/**
 * Whose libraries the host is to use: `own` wants the release without its libraries (`withoutLibraries`).
 *
 * @throws HOST_LIBRARIES_OLD with what is there and what is wanted by which file
 */
export function chooseLibraries(host: HostName, needs: NativeNeeds, found: HostLibraries): 'own' | 'shipped' {
  const { glibc, libraries } = found;
  if (glibc === null) throw new P4Error('HOST_LIBRARIES_OLD', { host, needed: wanted(needs.glibc), found: 'no glibc' });
  if (isOlder(glibc, needs.glibc.version)) throw tooOld(host, glibc, needs.glibc);
  const lacking = needs.libraries.filter(({ name }) => libraries.get(name) !== 'own').map(({ name }) => name);
  if (lacking.length === 0) return 'own';
  if (isOlder(glibc, needs.shippedGlibc.version)) {
    throw new P4Error('HOST_LIBRARIES_OLD', {
      host,
      needed: lacking.map(
        (name) => `${name} ${libraries.get(name) === 'old' ? '(newer than the one there)' : '(not there)'}`,
      ),
      why: `the one that could be sent along wants ${wanted(needs.shippedGlibc)}, and the host has glibc ${versionText(glibc)}`,
    });
  }
  return 'shipped';
}

const tooOld = (host: HostName, found: Version, need: NativeNeeds['glibc']): P4Error =>
  new P4Error('HOST_LIBRARIES_OLD', { host, needed: wanted(need), found: `glibc ${versionText(found)}` });

const wanted = ({ version, wantedBy }: NativeNeeds['glibc']): string =>
  `glibc ${versionText(version)}${wantedBy === '' ? '' : ` (${wantedBy})`}`;

/**
 * The state of just those pieces of a host that deploy keeps, read in one round trip that changes nothing.
 *
 * The script prints a line for each piece and `end`; its first word says what it is about, the rest are fields between
 * tabs. Paths are asked for and answered by number: no path is ever parsed.
 */
import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import { shellQuoted, shellWords } from '../ssh/shell-quoting.ts';
import type { Resource } from './resource.ts';

/** What was found. A piece that was not asked for is in none of the maps; one that is not there is `null`. */
export interface ActualState {
  readonly groups: ReadonlyMap<string, GroupState | null>;
  readonly users: ReadonlyMap<string, UserState | null>;
  readonly paths: ReadonlyMap<string, PathState>;
  readonly units: ReadonlyMap<string, UnitState>;
  readonly packages: ReadonlyMap<string, PackageState>;
}

export interface PackageState {
  readonly isInstalled: boolean;
}

export interface GroupState {
  readonly gid: number;
}

export interface UserState {
  readonly uid: number;
  readonly gid: number;
  readonly shell: string;
}

export interface PathOwnership {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** `UNKNOWN` where no such user is. */
  readonly user: string;
  readonly group: string;
}

export type PathState =
  | { readonly kind: 'absent' }
  | ({ readonly kind: 'file'; readonly sha256: string; readonly changedAt: number } & PathOwnership & {
        /** `null` for one that is too long to show, or no file of text. */
        readonly text: string | null;
      })
  | ({
      readonly kind: 'folder';
      /** Whether something below has another owner than the folder. */
      readonly hasStrangers: boolean;
      readonly isEmpty: boolean;
    } & PathOwnership)
  /** `changedAt`, here and above: seconds since 1970. */
  | { readonly kind: 'link'; readonly target: string; readonly changedAt: number }
  | { readonly kind: 'other'; readonly what: string };

export interface UnitState {
  readonly isKnown: boolean;
  readonly isEnabled: boolean;
  /** `active`, `failed`, `inactive`, `activating` and others, in systemd's words. */
  readonly activity: string;
  /** The unit's file has changed since systemd read it. */
  readonly needsReload: boolean;
  /** Since when its process runs, in seconds since 1970; 0 where none does. */
  readonly startedAt: number;
  /** When its process was last told to read its configuration again, in seconds since 1970; 0 where nobody noted it. */
  readonly rereadAt: number;
}

/** Files longer than this are compared by their hash alone. */
const shownFileBytes = 64 * 1024;

/** Asks for all pieces in one script. Files that may not be shown are not read, only hashed. */
export function actualScript(resources: readonly Resource[]): string {
  const units = resources.flatMap((resource) =>
    resource.kind === 'unit' ? [[resource.name, resource.rereads?.mark ?? '']] : [],
  );
  return [
    preamble,
    ...resources.map(question),
    ...units.map((words) => `unit ${shellWords(...words)}`),
    'echo end',
    '',
  ].join('\n');
}

/**
 * A folder that is wanted may be a link to one: an operator may have put it on another disk. Fields are taken apart by
 * the shell itself: on a busy host, starting a process takes longer than all that it is asked.
 */
const preamble = `export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
tab=$(printf '\\t')
newline='
'
line() { out=$1; shift; for field; do out="$out$tab$field"; done; printf '%s\\n' "$out"; }
nth() { rest=$2; skip=$1; while [ "$skip" -gt 0 ]; do rest=\${rest#*"$3"}; skip=$((skip - 1)); done; value=\${rest%%"$3"*}; }
group() { if found=$(getent group "$1"); then nth 2 "$found" :; line group "$1" "$value"; else line group "$1"; fi; }
user() {
  if found=$(getent passwd "$1"); then
    nth 2 "$found" :; uid=$value; nth 3 "$found" :; gid=$value; nth 6 "$found" :; line user "$1" "$uid" "$gid" "$value"
  else line user "$1"; fi
}
path() {
  case $3 in deep | flat-folder) [ -d "$2" ] && { folder "$@"; return; } ;; esac
  if [ -L "$2" ]; then line path "$1" link "$(readlink "$2")" "$(stat -c %Y "$2")"
  elif [ -d "$2" ]; then folder "$@"
  elif [ -f "$2" ]; then
    found=$(stat -c "%a$tab%u$tab%g$tab%U$tab%G$tab%Y$tab%s" "$2"); size=\${found##*"$tab"}; found=\${found%"$tab"*}
    sum=$(sha256sum <"$2"); shown=
    if [ "$3" = shown ] && [ "\${size:-0}" -le ${shownFileBytes} ]; then shown=$(base64 -w 0 <"$2"); fi
    line path "$1" file "\${found%"$tab"*}" "\${sum%% *}" "\${found##*"$tab"}" "$shown"
  elif [ -e "$2" ]; then line path "$1" other "$(stat -c %F "$2")"
  else line path "$1" absent; fi
}
folder() {
  strangers=no; content=empty; at=$2/.; owned=$(stat -c "%a$tab%u$tab%g$tab%U$tab%G" "$at")
  if [ "$3" = deep ]; then
    nth 1 "$owned" "$tab"; uid=$value; nth 2 "$owned" "$tab"
    [ -n "$(find "$at" \\( ! -uid "$uid" -o ! -gid "$value" \\) -print -quit)" ] && strangers=yes
  fi
  for entry in "$2"/* "$2"/.[!.]* "$2"/..?*; do
    if [ -e "$entry" ] || [ -L "$entry" ]; then case $entry in */lost+found) ;; *) content=full; break ;; esac; fi
  done
  line path "$1" folder "$owned" "$strangers" "$content"
}
property() { case $newline$shown in *"$newline$1="*) value=\${shown##*"$1="}; value=\${value%%"$newline"*} ;; *) value= ;; esac; }
unit() {
  shown=$(systemctl show -p LoadState,UnitFileState,ActiveState,NeedDaemonReload,ExecMainStartTimestamp "$1" 2>/dev/null)
  since=0; property ExecMainStartTimestamp; started=$value; property ActiveState; active=$value
  [ "$active" = active ] && [ -n "$started" ] && since=$(date -d "$started" +%s)
  property LoadState; loaded=$value; property UnitFileState; enabled=$value; property NeedDaemonReload
  reread=0; if [ -n "$2" ] && [ -e "$2" ]; then reread=$(stat -c %Y "$2"); fi
  line unit "$1" "$loaded" "$enabled" "$active" "$value" "$since" "$reread"
}
package() { line package "$1" "$(dpkg-query -W -f '\${db:Status-Status}' "$1" 2>/dev/null)"; }`;

function question(resource: Resource, index: number): string {
  switch (resource.kind) {
    case 'group':
    case 'user':
      return `${resource.kind} ${shellQuoted(resource.name)}`;
    case 'folder':
      return `path ${index} ${shellWords(resource.path, resource.isOwnedThroughout ? 'deep' : 'flat-folder')}`;
    case 'file':
      return `path ${index} ${shellWords(resource.path, isShown(resource) ? 'shown' : 'hidden')}`;
    case 'link':
    case 'absent':
      return `path ${index} ${shellWords(resource.path, 'flat')}`;
    case 'package':
      return `package ${shellQuoted(resource.name)}`;
    case 'withdrawal':
      // The facts have it.
      return ':';
    case 'release':
      // Looked at by what sends it.
      return ':';
    case 'unit':
      // Asked for at the end, all together.
      return ':';
  }
}

const isShown = (resource: Extract<Resource, { kind: 'file' }>): boolean =>
  resource.content.kind === 'bytes' && !resource.content.isSecret;

/**
 * @param resources those that were asked for
 * @throws HOST_FACTS_UNREADABLE
 */
export function parseActual(host: HostName, resources: readonly Resource[], text: string): ActualState {
  const groups = new Map<string, GroupState | null>();
  const users = new Map<string, UserState | null>();
  const paths = new Map<string, PathState>();
  const units = new Map<string, UnitState>();
  const packages = new Map<string, PackageState>();
  const unreadable = (line: string): P4Error =>
    new P4Error('HOST_FACTS_UNREADABLE', { host, what: 'the state of the host', found: line.slice(0, 200) });
  const lines = text.split('\n').filter((line) => line !== '');
  if (lines.at(-1) !== 'end') throw unreadable(lines.at(-1) ?? 'nothing');
  for (const line of lines.slice(0, -1)) {
    const [about, name = '', ...fields] = line.split('\t');
    if (about === 'group') groups.set(name, fields.length === 0 ? null : { gid: Number(fields[0]) });
    else if (about === 'user') users.set(name, fields.length === 0 ? null : userState(fields));
    else if (about === 'unit') units.set(name, unitState(fields));
    else if (about === 'package') packages.set(name, { isInstalled: fields[0] === 'installed' });
    else if (about === 'path') {
      const state = pathState(fields);
      const resource = resources[Number(name)];
      if (state === null || resource === undefined || !('path' in resource)) throw unreadable(line);
      paths.set(resource.path, state);
    } else throw unreadable(line);
  }
  return { groups, users, paths, units, packages };
}

const userState = ([uid, gid, shell = '']: readonly string[]): UserState => ({
  uid: Number(uid),
  gid: Number(gid),
  shell,
});

const unitState = ([loaded, enabled, activity = '', ...rest]: readonly string[]): UnitState => ({
  isKnown: loaded === 'loaded',
  isEnabled: enabled === 'enabled',
  activity,
  needsReload: rest[0] === 'yes',
  startedAt: Number(rest[1]),
  rereadAt: Number(rest[2]),
});

/** `null` for what the script does not print. */
function pathState(fields: readonly string[]): PathState | null {
  const [kind, ...rest] = fields;
  if (kind === 'absent') return { kind };
  if (kind === 'other') return { kind, what: rest.join(' ') };
  if (kind === 'link') return { kind, target: rest.slice(0, -1).join('\t'), changedAt: Number(rest.at(-1)) };
  const [mode = '', uid, gid, user = '', group = '', ...more] = rest;
  const owned = { mode: parseInt(mode, 8), uid: Number(uid), gid: Number(gid), user, group };
  if (kind === 'folder') return { kind, ...owned, hasStrangers: more[0] === 'yes', isEmpty: more[1] === 'empty' };
  if (kind !== 'file') return null;
  const [sha256 = '', changedAt, shown = ''] = more;
  const text = shown === '' ? null : Buffer.from(shown, 'base64').toString('utf8');
  return { kind, ...owned, sha256, changedAt: Number(changedAt), text };
}

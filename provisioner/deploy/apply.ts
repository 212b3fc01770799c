/**
 * Changes made a script for the host. What is written is written under a temporary name, made durable and renamed, so
 * that a run cut off at any moment leaves each file as it was or as it shall be; running it again finishes it.
 *
 * Contents travel on standard input, one line of base64 for each file in order: never in a command line, which others
 * on the host can read.
 */
import { assert } from '../../protocol/assert.ts';
import { shellQuoted, shellWords } from '../ssh/shell-quoting.ts';
import type { Change, UnitStep } from './difference.ts';
import { installCommands } from './monitoring/package-installation.ts';
import { withdrawScript } from './monitoring/withdrawal.ts';
import type { FileResource, Ownership, Resource, UnitResource } from './resource.ts';

export interface HostScript {
  readonly script: string;
  readonly input: Uint8Array;
}

/**
 * @param changes of one phase, in order. A release is sent by other means.
 */
export function applyScript(changes: readonly Change[]): HostScript {
  const lines = changes.map(commands);
  const contents = changes.flatMap(({ action, resource }) =>
    action.kind === 'write-file' ? [contentOf(resource)] : [],
  );
  return {
    script: [preamble, ...lines, ''].join('\n'),
    input: Buffer.from(contents.map((bytes) => `${Buffer.from(bytes).toString('base64')}\n`).join('')),
  };
}

/** `-e`: the first step that fails ends the script, and says so on standard error. */
const preamble = `set -eu
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
umask 077
put() {
  IFS= read -r content
  if [ -n "\${4:-}" ] && [ -f "$1" ]; then
    IFS= read -r first <"$1" || true
    case $first in "$5"*) ;; *) cp -p "$1" "$4.p4-new"; sync "$4.p4-new"; mv -fT "$4.p4-new" "$4" ;; esac
  fi
  [ -d "$(dirname "$1")" ] || mkdir -p -m 755 "$(dirname "$1")"
  printf '%s' "$content" | base64 -d >"$1.p4-new"
  chown "$3" "$1.p4-new"; chmod "$2" "$1.p4-new"; sync "$1.p4-new"
  mv -fT "$1.p4-new" "$1"; sync "$(dirname "$1")"
}
own() {
  at=$1; [ -d "$1" ] && at=$1/.
  chown $4 "$3" "$at"; chmod "$2" "$at"
}
folder() { mkdir -p "$1"; own "$1" "$2" "$3" ''; }
point() {
  ln -sfn "$2" "$1.p4-new"
  if [ -d "$1" ] && [ ! -L "$1" ]; then rm -rf "$1"; fi
  mv -fT "$1.p4-new" "$1"; sync "$(dirname "$1")"
}`;

function contentOf(resource: Resource): Uint8Array {
  assert(resource.kind === 'file' && resource.content.kind === 'bytes', 'a file is written with what it shall hold');
  return resource.content.bytes;
}

function commands({ resource, action }: Change): string {
  switch (resource.kind) {
    case 'group':
      return `groupadd --system ${action.kind === 'create-group' ? idOption('--gid', action.gid) : ''} ${shellQuoted(resource.name)}`;
    case 'user': {
      const options = shellWords('--gid', resource.group, '--shell', resource.shell);
      if (action.kind !== 'create-user') return `usermod ${options} ${shellQuoted(resource.name)}`;
      const id = idOption('--uid', action.uid);
      return `useradd --system --no-create-home --home-dir /nonexistent ${id} ${options} ${shellQuoted(resource.name)}`;
    }
    case 'folder':
      return action.kind === 'make-folder' ? `folder ${owned(resource)}` : ownCommand(resource);
    case 'file':
      return action.kind === 'write-file' ? `put ${owned(resource)}${keeping(resource)}` : ownCommand(resource);
    case 'link':
      return `point ${shellWords(resource.path, resource.target)}`;
    case 'absent':
      return `rm -f ${shellQuoted(resource.path)}`;
    case 'unit':
      return action.kind === 'unit' ? unitCommands(resource, action.steps) : '';
    case 'package':
      return installCommands(resource.name);
    case 'withdrawal':
      return withdrawScript;
    case 'release':
      assert(false, 'a release is sent, not applied');
  }
}

const idOption = (option: string, id: number | null): string => (id === null ? '' : `${option} ${id}`);

type Owned = Extract<Resource, { kind: 'folder' | 'file' }>;

const ownerText = ({ user, group }: Ownership): string => `${user}:${group}`;

const owned = ({ path, mode, owner }: Owned): string => shellWords(path, mode.toString(8), ownerText(owner));

const keeping = ({ replaced }: FileResource): string =>
  replaced === undefined ? '' : ` ${shellWords(replaced.keptAt, replaced.ownMark)}`;

function ownCommand(resource: Owned): string {
  const isDeep = resource.kind === 'folder' && resource.isOwnedThroughout;
  return `own ${owned(resource)} ${isDeep ? '-R' : "''"}`;
}

function unitCommands({ name, rereads }: UnitResource, steps: readonly UnitStep[]): string {
  const unit = shellQuoted(name);
  const command: Readonly<Record<UnitStep, string>> = {
    reload: 'systemctl daemon-reload',
    enable: `systemctl --quiet enable ${unit}`,
    start: `systemctl reset-failed ${unit} 2>/dev/null || true; systemctl start ${unit}`,
    restart: `systemctl reset-failed ${unit} 2>/dev/null || true; systemctl restart ${unit}`,
    reread: `systemctl reload ${unit}${rereads === null ? '' : `; touch ${shellQuoted(rereads.mark)}`}`,
  };
  return steps.map((step) => command[step]).join('\n');
}

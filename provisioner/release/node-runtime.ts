/**
 * The Node that a release brings along, and how it is started.
 *
 * `runtime/bin/node` is a few lines of `sh` that start `runtime/bin/node-program`, the Node binary, in their own place (the
 * process keeps its number, as systemd wants it). Where the release has a `lib/`, they put it first on the dynamic linker's
 * path. Node's own binary stays byte for byte what it was (no run path is written into it), and whoever starts the release
 * needs to know nothing of libraries: a unit, a program over ssh, or a person. What Node starts inherits the path.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { readElf } from './elf-file.ts';
import { librariesFolder, type FileSource, type ReleaseArchitecture } from './release.ts';

export const launcherPath = 'runtime/bin/node';
export const programPath = 'runtime/bin/node-program';

export const launcher: FileSource & { readonly kind: 'text' } = {
  kind: 'text',
  text: `#!/bin/sh
# Starts Node with the libraries of this release, where the host lacks them.
case $0 in */*) bin=\${0%/*} ;; *) bin=. ;; esac
bin=$(cd "$bin" && pwd -P) || exit 126
lib=\${bin%/runtime/bin}/${librariesFolder}
if [ -d "$lib" ]; then
  LD_LIBRARY_PATH=$lib\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
fi
exec "$bin/node-program" "$@"
`,
};

/** How Node calls the operator's own machine; a parameter so that tests can be on another. */
export interface OwnNode {
  readonly platform: string;
  readonly architecture: string;
  readonly path: string;
}

export const ownNode = (): OwnNode => ({
  platform: process.platform,
  architecture: process.arch,
  path: process.execPath,
});

/** Name of the package that carries Node's official binary for an architecture. */
export const runtimePackage = (architecture: ReleaseArchitecture): string => `node-linux-${architecture}`;

/**
 * A Node binary for hosts of that architecture: this command's own, else that of a package. `null` where there is neither.
 */
export function findNode(root: string, architecture: ReleaseArchitecture, own: OwnNode = ownNode()): string | null {
  const isOwnFit = own.platform === 'linux' && own.architecture === architecture;
  const candidates = [
    ...(isOwnFit ? [own.path] : []),
    join(root, 'node_modules', runtimePackage(architecture), 'bin', 'node'),
  ];
  // A musl build asks for musl by its name.
  const fits = (path: string): boolean => {
    const elf = existsSync(path) ? readElf(path) : null;
    return elf?.machine === architecture && elf.needed.every((name) => !name.includes('musl'));
  };
  return candidates.find(fits) ?? null;
}

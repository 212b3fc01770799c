/** Libraries of the operator's own machine that travel with a release (`native-needs.ts` says why). */
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';

import { readElf } from './elf-file.ts';
import { missingLibraries, type LibraryNeed, type ReleaseElf } from './native-needs.ts';
import { librariesFolder, type ReleaseArchitecture } from './release.ts';

/** Where distributions keep the libraries of each architecture, those for building programs for another one included. */
const folders: Readonly<Record<ReleaseArchitecture, readonly string[]>> = {
  x64: ['/usr/lib/x86_64-linux-gnu', '/lib/x86_64-linux-gnu', '/usr/lib64', '/lib64', '/usr/lib', '/lib'],
  arm64: ['/usr/lib/aarch64-linux-gnu', '/lib/aarch64-linux-gnu', '/usr/lib64', '/lib64', '/usr/aarch64-linux-gnu/lib'],
};

export interface SharedLibrary extends ReleaseElf {
  /** Absolute path here. */
  readonly source: string;
}

export interface SharedLibraries {
  readonly found: readonly SharedLibrary[];
  readonly missing: readonly string[];
}

/** Those that are needed, and those that these need. */
export function findSharedLibraries(needs: readonly LibraryNeed[], architecture: ReleaseArchitecture): SharedLibraries {
  const found: SharedLibrary[] = [];
  const missing: string[] = [];
  const waiting = needs.map(({ name }) => name);
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const path = `${librariesFolder}/${name}`;
    if (found.some((library) => library.path === path)) continue;
    const library = findLibrary(name, architecture);
    if (library === null)
      missing.push(`${path}: the library ${name} for linux ${architecture}, installed on this machine`);
    else found.push({ ...library, path });
    if (library !== null) waiting.push(...missingLibraries([{ path, elf: library.elf }]).map((need) => need.name));
  }
  return { found, missing };
}

function findLibrary(name: string, architecture: ReleaseArchitecture): Omit<SharedLibrary, 'path'> | null {
  for (const folder of folders[architecture]) {
    const path = join(folder, name);
    const elf = existsSync(path) ? readElf(path) : null;
    if (elf?.machine === architecture) return { source: realpathSync(path), elf };
  }
  return null;
}

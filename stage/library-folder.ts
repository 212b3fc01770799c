/** Finds the folder with llama.cpp's shared objects: named by the caller, by P4_LLAMA_LIBRARIES, or a platform package's. */
import { existsSync, readdirSync, type PathLike } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { P4Error } from '../protocol/errors.ts';

/** The three objects that are loaded by name; the CPU and GPU backends beside them are found by ggml itself. */
export interface LibraryFiles {
  readonly folder: string;
  readonly base: string;
  readonly ggml: string;
  readonly llama: string;
}

/** Platform packages of node-llama-cpp in order of preference. */
const packages: Readonly<Record<'cpu' | 'gpu', Readonly<Partial<Record<NodeJS.Architecture, readonly string[]>>>>> = {
  cpu: { x64: ['linux-x64'], arm64: ['linux-arm64'], arm: ['linux-armv7l'] },
  gpu: { x64: ['linux-x64-cuda', 'linux-x64-vulkan'], arm64: ['linux-arm64'] },
};

/**
 * @param folder the caller's choice, `null` to look in P4_LLAMA_LIBRARIES and then in the installed packages
 * @throws ENGINE_LIBRARY_MISSING with every place looked at
 */
export function findLibraryFiles(device: 'cpu' | 'gpu', folder: string | null): LibraryFiles {
  const named = folder ?? process.env['P4_LLAMA_LIBRARIES'] ?? null;
  const places = named === null ? packageFolders(device) : [named];
  for (const place of places) {
    const files = libraryFiles(place);
    if (files !== null) return files;
  }
  throw new P4Error('ENGINE_LIBRARY_MISSING', { device, architecture: process.arch, places });
}

function packageFolders(device: 'cpu' | 'gpu'): string[] {
  const names = process.platform === 'linux' ? (packages[device][process.arch] ?? []) : [];
  return names.flatMap((name) => {
    const root = packageRoot(`@node-llama-cpp/${name}`);
    return root === null ? [] : [join(root, 'bins', name)];
  });
}

/** The packages are optional dependencies of node-llama-cpp, so they are looked for from there. */
function packageRoot(name: string): string | null {
  try {
    const llamaPackage = createRequire(import.meta.url).resolve('node-llama-cpp');
    return dirname(dirname(createRequire(llamaPackage).resolve(name)));
  } catch {
    return null;
  }
}

function libraryFiles(folder: string): LibraryFiles | null {
  const names = existsSync(folder) ? namesIn(folder) : [];
  const find = (pattern: RegExp): string | null => {
    const name = names.find((candidate) => pattern.test(candidate));
    return name === undefined ? null : join(folder, name);
  };
  const base = find(/^libggml-base\.so/);
  const ggml = find(/^libggml(\.[a-z0-9.]+)?\.so/);
  const llama = find(/^libllama(\.[a-z0-9.]+)?\.so/);
  return base === null || ggml === null || llama === null ? null : { folder, base, ggml, llama };
}

function namesIn(folder: PathLike): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

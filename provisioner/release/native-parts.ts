/**
 * Files of packages that programs load by names made while they run, so that `module-trace.ts` cannot see them: addons, and
 * llama.cpp's libraries as `stage/library-folder.ts` looks for them.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import type { ReleaseArchitecture } from './release.ts';

/** Whether the release can compute on GPUs: `cuda-fallback` is the larger build for GPUs that the other one leaves out. */
export type ReleaseGpu = 'none' | 'cuda' | 'cuda-fallback';

export interface NativePart {
  /** Path in the release and in the checkout alike, where `source` says nothing else. */
  readonly path: string;
  /** Path in the checkout. */
  readonly source: string;
}

export interface NativeParts {
  readonly found: readonly NativePart[];
  /** What is not there, and where it would come from. */
  readonly missing: readonly string[];
}

/** Libraries of llama.cpp that a stage loads; `libllama-common` and the addon beside them serve node-llama-cpp's own API. */
const loadedLibraries =
  /^lib(ggml-base|ggml-cpu(-\w+(\.\w+)?)?|ggml-cuda|ggml(\.[a-z0-9.]+)?|llama(\.[a-z0-9.]+)?)\.so$/;

export function findNativeParts(root: string, architecture: ReleaseArchitecture, gpu: ReleaseGpu): NativeParts {
  const parts = [addons(root, architecture), librariesOf(root, `linux-${architecture}`)];
  if (gpu !== 'none') parts.push(cudaLibraries(root, architecture, gpu));
  return { found: parts.flatMap(({ found }) => found), missing: parts.flatMap(({ missing }) => missing) };
}

function addons(root: string, architecture: ReleaseArchitecture): NativeParts {
  const koffi = `@koromix/koffi-linux-${architecture}`;
  return listed(root, [
    {
      path: 'node_modules/sqlite3/build/Release/node_sqlite3.node',
      from: `the package sqlite3, built for linux ${architecture}`,
    },
    { path: `node_modules/${koffi}/linux_${architecture}/koffi.node`, from: `the package ${koffi}` },
    {
      path: `node_modules/@node-rs/crc32-linux-${architecture}-gnu/crc32.linux-${architecture}-gnu.node`,
      from: `the package @node-rs/crc32-linux-${architecture}-gnu`,
    },
    // Not run: where it is, is where its libraries are looked for.
    { path: 'node_modules/node-llama-cpp/package.json', from: 'the package node-llama-cpp' },
    { path: 'node_modules/node-llama-cpp/dist/index.js', from: 'the package node-llama-cpp' },
  ]);
}

/** The package's entry is not run either, only found. */
function librariesOf(root: string, name: string): NativeParts {
  const home = `node_modules/@node-llama-cpp/${name}`;
  const folder = `${home}/bins/${name}`;
  const names = existsSync(join(root, folder)) ? readdirSync(join(root, folder)) : [];
  const libraries = names.filter((each) => loadedLibraries.test(each)).sort();
  const from = `the package @node-llama-cpp/${name}`;
  const entry = listed(root, [
    { path: `${home}/package.json`, from },
    { path: `${home}/dist/index.js`, from },
  ]);
  if (libraries.length === 0) return { found: [], missing: [`llama.cpp's libraries: ${from}`] };
  const found = libraries.map((each) => ({ path: `${folder}/${each}`, source: `${folder}/${each}` }));
  return { found: [...entry.found, ...found], missing: entry.missing };
}

function cudaLibraries(root: string, architecture: ReleaseArchitecture, gpu: 'cuda' | 'cuda-fallback'): NativeParts {
  const name = `linux-${architecture}-cuda`;
  const parts = librariesOf(root, name);
  if (gpu === 'cuda') return parts;
  const source = `node_modules/@node-llama-cpp/${name}-ext/bins/${name}/fallback/libggml-cuda.so`;
  const isThere = existsSync(join(root, source));
  // In the place of the other one, where the stage finds it.
  const found = parts.found.map((part) => (part.path.endsWith('/libggml-cuda.so') ? { ...part, source } : part));
  return {
    found,
    missing: [...parts.missing, ...(isThere ? [] : [`${source}: the package @node-llama-cpp/${name}-ext`])],
  };
}

function listed(root: string, parts: readonly { readonly path: string; readonly from: string }[]): NativeParts {
  const isThere = ({ path }: { readonly path: string }): boolean => existsSync(join(root, path));
  return {
    found: parts.filter(isThere).map(({ path }) => ({ path, source: path })),
    missing: parts.filter((part) => !isThere(part)).map(({ path, from }) => `${path}: ${from}`),
  };
}

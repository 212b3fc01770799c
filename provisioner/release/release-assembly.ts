/**
 * Puts a release together from the checkout: the program as it was built, the packages it imports, Node, and libraries.
 *
 * Only what runs: no sources, typings, tests or documents, and no source maps, since the built program is plain enough to
 * read a stack trace by.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import { readElf } from './elf-file.ts';
import type { FileHashes } from './file-hashes.ts';
import { traceModules } from './module-trace.ts';
import { findNativeParts, type ReleaseGpu } from './native-parts.ts';
import { glibcNeed, missingLibraries, type ReleaseElf } from './native-needs.ts';
import {
  findNode,
  launcher,
  launcherPath,
  ownNode,
  programPath,
  runtimePackage,
  type OwnNode,
} from './node-runtime.ts';
import { releaseOf, type FileSource, type Release, type ReleaseFile, type ReleaseTarget } from './release.ts';
import { findSharedLibraries } from './shared-libraries.ts';

export interface AssemblyOrder {
  /** The checkout: built, with its packages installed. Absolute. */
  readonly root: string;
  readonly target: ReleaseTarget;
  readonly gpu: ReleaseGpu;
  readonly hashes: FileHashes;
  /** The Node that runs this command, where nothing is said. */
  readonly own?: OwnNode;
}

/** Folders of the program that run on hosts; in each, every `main.js` is a program. */
const programFolders = ['dist/agent', 'dist/stage', 'dist/bridge'] as const;
/** What programs read besides what they import. */
const readFiles = ['package.json', 'protocol/p4.proto'] as const;

/**
 * @throws RELEASE_PART_MISSING with everything that is not at hand and where it would come from; RELEASE_SOURCE_CHANGED
 */
export async function assembleRelease(order: AssemblyOrder): Promise<Release> {
  const { root, target, gpu } = order;
  const program = programParts(root, target);
  const runtime = runtimeParts(order);
  const native = findNativeParts(root, target.architecture, gpu);
  const parts = uniqueParts([
    ...program.found,
    ...runtime.found,
    ...native.found.map(({ path, source }) => ({ path, source: join(root, source) })),
  ]);
  const elves = elvesAmong(parts);
  const needed = missingLibraries(elves);
  const shared = findSharedLibraries(needed, target.architecture);
  const missing = [...program.missing, ...runtime.missing, ...native.missing, ...shared.missing];
  refuseMissing(target, [...missing, ...foreign(elves, target)]);
  const files = await Promise.all([...parts, ...shared.found].map((part) => releaseFile(part, order.hashes)));
  const needs = { glibc: glibcNeed(elves), libraries: needed, shippedGlibc: glibcNeed(shared.found) };
  return releaseOf([...files, textFile(launcherPath, launcher)], needs);
}

interface Part {
  readonly path: string;
  /** Absolute. */
  readonly source: string;
}

interface Parts {
  readonly found: readonly Part[];
  readonly missing: readonly string[];
}

function programParts(root: string, { architecture }: ReleaseTarget): Parts {
  const entries = programFolders.flatMap((folder) => mainsIn(root, folder));
  const missing = ['dist/agent/main.js', 'dist/stage/main.js', ...readFiles].filter(
    (path) => !existsSync(join(root, path)),
  );
  if (missing.length > 0) {
    return { found: [], missing: missing.map((path) => `${path}: the built program (node build.js)`) };
  }
  const trace = traceModules({ root, entries, architecture });
  const traced = [...trace.files].map((source) => ({ path: relative(root, source), source }));
  const read = readFiles.map((path) => ({ path, source: join(root, path) }));
  return {
    found: [...traced, ...read],
    missing: trace.missing.map((what) => `${what}: the installed packages (npm ci)`),
  };
}

function mainsIn(root: string, folder: string): readonly string[] {
  const path = join(root, folder);
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => /(^|\/)main\.js$/.test(name)).map((name) => join(path, name));
}

function runtimeParts({ root, target: { architecture }, own = ownNode() }: AssemblyOrder): Parts {
  const source = findNode(root, architecture, own);
  if (source !== null) return { found: [{ path: programPath, source }], missing: [] };
  const why = `deploy from a linux ${architecture} machine, or add the package ${runtimePackage(architecture)}`;
  return { found: [], missing: [`${programPath}: Node for linux ${architecture} with glibc; ${why}`] };
}

const uniqueParts = (parts: readonly Part[]): readonly Part[] => [
  ...new Map(parts.map((part) => [part.path, part])).values(),
];

/** Programs and libraries, and what they want. */
function elvesAmong(parts: readonly Part[]): readonly ReleaseElf[] {
  return parts.flatMap(({ path, source }) => {
    const elf = /\.(js|cjs|mjs|json|proto)$/.test(path) ? null : readElf(source);
    return elf === null ? [] : [{ path, elf }];
  });
}

/** Addons are built for the machine they were installed on. */
const foreign = (elves: readonly ReleaseElf[], { architecture }: ReleaseTarget): readonly string[] =>
  elves
    .filter(({ elf }) => elf.machine !== architecture)
    .map(({ path }) => `${path}: it is there, but not for linux ${architecture}; deploy from such a machine`);

function refuseMissing({ architecture }: ReleaseTarget, missing: readonly string[]): void {
  if (missing.length === 0) return;
  throw new P4Error('RELEASE_PART_MISSING', { hosts: `linux ${architecture}`, missing: [...new Set(missing)].sort() });
}

async function releaseFile({ path, source }: Part, hashes: FileHashes): Promise<ReleaseFile> {
  const { sha256, bytes } = await hashes.hash(source);
  return { path, mode: path === programPath ? 0o755 : 0o644, sha256, bytes, source: { kind: 'file', path: source } };
}

function textFile(path: string, source: FileSource & { readonly kind: 'text' }): ReleaseFile {
  const content = Buffer.from(source.text);
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { path, mode: 0o755, sha256, bytes: content.length, source };
}

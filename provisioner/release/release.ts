/**
 * A release: every file that a host of one kind needs to run agents and stages, with nothing installed there beforehand.
 *
 * Its id follows from paths, modes and contents alone, so the same inputs make the same release on every machine.
 */
import { createHash } from 'node:crypto';

import { assert } from '../../protocol/assert.ts';
import { canonicalJson } from '../../protocol/canonical-json.ts';
import type { NativeNeeds } from './native-needs.ts';

/** Hosts are Linux with glibc. */
export type ReleaseArchitecture = 'x64' | 'arm64';

export interface ReleaseTarget {
  readonly architecture: ReleaseArchitecture;
}

/** What a file's bytes are taken from. */
export type FileSource =
  { readonly kind: 'file'; readonly path: string } | { readonly kind: 'text'; readonly text: string };

export interface ReleaseFile {
  /** Below the release's folder; letters, digits and `@ . _ + - /`. */
  readonly path: string;
  readonly mode: 0o644 | 0o755;
  /** 64 hexadecimal digits. */
  readonly sha256: string;
  readonly bytes: number;
  readonly source: FileSource;
}

export interface Release {
  /** 16 hexadecimal digits. */
  readonly id: string;
  /** Ordered by path. */
  readonly files: readonly ReleaseFile[];
  /** What the release's programs want of the host. */
  readonly needs: NativeNeeds;
}

/** Part of the release that stands in for libraries which a host does not have. */
export const librariesFolder = 'lib';

/** @param files in any order, each path once; one content has one mode, since a host keeps it once */
export function releaseOf(files: readonly ReleaseFile[], needs: NativeNeeds): Release {
  const ordered = [...files].sort((one, other) => (one.path < other.path ? -1 : 1));
  const modes = new Map<string, number>();
  for (const [index, { path, sha256, mode }] of ordered.entries()) {
    assert(isPlainPath(path), `a release has plain paths only, not ${path}`);
    assert(ordered[index - 1]?.path !== path, `a release has each path once, ${path} too`);
    assert((modes.get(sha256) ?? mode) === mode, `one content has one mode, that of ${path} too`);
    modes.set(sha256, mode);
  }
  const manifest = ordered.map(({ path, mode, sha256, bytes }) => ({ path, mode, sha256, bytes }));
  const id = createHash('sha256').update(canonicalJson(manifest)).digest('hex').slice(0, 16);
  return { id, files: ordered, needs };
}

/** The same release for a host that has the libraries itself. */
export const withoutLibraries = ({ files, needs }: Release): Release =>
  releaseOf(
    files.filter(({ path }) => !path.startsWith(`${librariesFolder}/`)),
    needs,
  );

export const releaseBytes = ({ files }: Release): number => files.reduce((sum, { bytes }) => sum + bytes, 0);

export interface ReleasePart {
  readonly name: string;
  readonly files: number;
  readonly bytes: number;
}

/** Packages and top folders with their sizes, the largest first. */
export function releaseParts({ files }: Release): readonly ReleasePart[] {
  const parts = new Map<string, ReleasePart>();
  for (const { path, bytes } of files) {
    const name = partOf(path);
    const former = parts.get(name) ?? { name, files: 0, bytes: 0 };
    parts.set(name, { name, files: former.files + 1, bytes: former.bytes + bytes });
  }
  return [...parts.values()].sort((one, other) => other.bytes - one.bytes);
}

/** `node_modules/yaml`, `node_modules/@grpc/grpc-js`, `runtime`, `dist`. */
function partOf(path: string): string {
  const words = path.split('/');
  if (words[0] !== 'node_modules') return words[0] ?? path;
  return words.slice(0, words[1]?.startsWith('@') === true ? 3 : 2).join('/');
}

function isPlainPath(path: string): boolean {
  const words = path.split('/');
  return /^[A-Za-z0-9@._+/-]+$/.test(path) && words.every((word) => word !== '' && word !== '.' && word !== '..');
}

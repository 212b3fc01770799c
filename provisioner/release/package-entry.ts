/**
 * Which file of a package an import means, by Node's rules (nodejs.org, "Packages" and "Modules"), for the Node that runs
 * on the hosts. Patterns with `*` in `exports` are known, `imports` are not.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { isRecord } from '../../protocol/plain-value.ts';

export type ImportKind = 'import' | 'require';

/** What a package says of itself, as far as it matters here. */
export interface PackageManifest {
  readonly name: string;
  readonly isModule: boolean;
  readonly main: string | null;
  /** `undefined` where every file may be imported. */
  readonly exports: unknown;
  /** Names of the packages that it may import. */
  readonly dependencies: ReadonlySet<string>;
  /** `null`: any. */
  readonly platforms: {
    readonly os: readonly string[] | null;
    readonly cpu: readonly string[] | null;
    readonly libc: readonly string[] | null;
  };
}

/** The package whose folder this is; `null` where it is none. */
export function readManifest(folder: string): PackageManifest | null {
  const path = join(folder, 'package.json');
  if (!existsSync(path)) return null;
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
  if (!isRecord(value)) return null;
  const names = ['dependencies', 'optionalDependencies', 'peerDependencies'].flatMap((key) => {
    const listed = value[key];
    return isRecord(listed) ? Object.keys(listed) : [];
  });
  return {
    name: typeof value['name'] === 'string' ? value['name'] : '',
    isModule: value['type'] === 'module',
    main: typeof value['main'] === 'string' ? value['main'] : null,
    exports: value['exports'],
    dependencies: new Set(names),
    platforms: { os: texts(value['os']), cpu: texts(value['cpu']), libc: texts(value['libc']) },
  };
}

/**
 * The file that an import of `subpath` (`.` or `./…`) means; `null` where there is none.
 *
 * @param folder the package's
 */
export function packageFile(folder: string, subpath: string, kind: ImportKind): string | null {
  const manifest = readManifest(folder);
  if (manifest === null) return null;
  if (manifest.exports !== undefined) {
    const target = exported(manifest.exports, subpath, kind);
    return target === null ? null : existing(join(folder, target));
  }
  if (subpath !== '.') return fileAt(join(folder, subpath));
  return (manifest.main === null ? null : fileAt(join(folder, manifest.main))) ?? fileAt(join(folder, 'index'));
}

/** The file that a path without regard to its ending means. */
export function fileAt(path: string): string | null {
  const candidates = ['', '.js', '.json', '.node', '/index.js', '/index.json', '/index.node'];
  for (const ending of candidates) {
    const file = existing(path + ending);
    if (file !== null) return file;
  }
  const manifest = readManifest(path);
  const main = manifest?.main ?? null;
  return main === null ? null : existing(join(path, main));
}

function existing(path: string): string | null {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true ? path : null;
}

function exported(exports: unknown, subpath: string, kind: ImportKind): string | null {
  const hasSubpaths = isRecord(exports) && Object.keys(exports).some((key) => key.startsWith('.'));
  if (!hasSubpaths) return subpath === '.' ? chosen(exports, kind) : null;
  const exact = exports[subpath];
  if (exact !== undefined) return chosen(exact, kind);
  for (const [pattern, target] of Object.entries(exports)) {
    const [before, after] = pattern.split('*');
    if (before === undefined || after === undefined) continue;
    if (!subpath.startsWith(before) || !subpath.endsWith(after)) continue;
    const middle = subpath.slice(before.length, subpath.length - after.length);
    return chosen(target, kind)?.replaceAll('*', middle) ?? null;
  }
  return null;
}

/** The first branch whose condition holds. */
function chosen(target: unknown, kind: ImportKind): string | null {
  if (typeof target === 'string') return target;
  if (Array.isArray(target)) return target.map((each) => chosen(each, kind)).find((each) => each !== null) ?? null;
  if (!isRecord(target)) return null;
  const conditions = new Set(['node', 'node-addons', 'module-sync', 'default', kind]);
  for (const [condition, branch] of Object.entries(target)) {
    if (!conditions.has(condition)) continue;
    const found = chosen(branch, kind);
    if (found !== null) return found;
  }
  return null;
}

const texts = (value: unknown): readonly string[] | null =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : null;

/**
 * Which files a program runs: those that it imports, and that these import, down to the last.
 *
 * Imports are found in the text, comments and texts included, so rather too many than too few. A package's own imports are
 * followed only into packages that it names as dependencies: one that is mentioned in a comment does not come along. What
 * is imported by a name that is put together while the program runs cannot be seen; `native-parts.ts` adds it.
 */
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative } from 'node:path';

import { fileAt, packageFile, readManifest, type ImportKind, type PackageManifest } from './package-entry.ts';
import type { ReleaseArchitecture } from './release.ts';

export interface ModuleTrace {
  /** Absolute paths: programs, and the `package.json` of every package they are in. */
  readonly files: ReadonlySet<string>;
  /** Imports of the program's own files that lead nowhere: `what (imported by path)`. */
  readonly missing: readonly string[];
  /** Folders of the packages that were entered, by their names. */
  readonly packages: ReadonlyMap<string, string>;
}

export interface TraceOrder {
  /** The checkout, with `node_modules` in it. */
  readonly root: string;
  /** Absolute paths. */
  readonly entries: readonly string[];
  readonly architecture: ReleaseArchitecture;
}

export function traceModules(order: TraceOrder): ModuleTrace {
  return new Tracer(order).trace();
}

class Tracer {
  readonly #order: TraceOrder;
  readonly #files = new Set<string>();
  readonly #missing: string[] = [];
  readonly #packages = new Map<string, string>();
  readonly #manifests = new Map<string, PackageManifest | null>();
  readonly #waiting: string[];

  constructor(order: TraceOrder) {
    this.#order = order;
    this.#waiting = [...order.entries];
  }

  trace(): ModuleTrace {
    for (let file = this.#waiting.pop(); file !== undefined; file = this.#waiting.pop()) this.#visit(file);
    return { files: this.#files, missing: this.#missing, packages: this.#packages };
  }

  #visit(file: string): void {
    if (this.#files.has(file)) return;
    this.#files.add(file);
    const home = this.#homeOf(file);
    if (!/\.[cm]?js$/.test(file)) return;
    const isOwn = home.folder === this.#order.root;
    for (const specifier of specifiersIn(readFileSync(file, 'utf8'), isOwn ? 'import' : 'all')) {
      const found = this.#find(specifier, file, home);
      if (found !== null) this.#waiting.push(found);
      else if (isOwn) this.#missing.push(`${specifier} (imported by ${relative(home.folder, file)})`);
    }
  }

  /** The package that a file is in; its manifests are files of the program, too: Node reads them. */
  #homeOf(file: string): Home {
    for (let folder = dirname(file); ; folder = dirname(folder)) {
      const manifest = this.#manifest(folder);
      if (manifest !== null) this.#files.add(join(folder, 'package.json'));
      const isHome = folder === this.#order.root || /node_modules\/(@[^/]+\/)?[^/]+$/.test(folder);
      if (!isHome && folder !== dirname(folder)) continue;
      const isModule = this.#nearestManifest(file)?.isModule === true;
      const kind: ImportKind = file.endsWith('.mjs') || (file.endsWith('.js') && isModule) ? 'import' : 'require';
      return { folder, kind, dependencies: manifest?.dependencies ?? new Set() };
    }
  }

  #nearestManifest(file: string): PackageManifest | null {
    for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
      const manifest = this.#manifest(folder);
      if (manifest !== null) return manifest;
    }
    return null;
  }

  #manifest(folder: string): PackageManifest | null {
    const known = this.#manifests.get(folder);
    if (known !== undefined) return known;
    const manifest = readManifest(folder);
    this.#manifests.set(folder, manifest);
    return manifest;
  }

  #find(specifier: string, file: string, home: Home): string | null {
    if (specifier.startsWith('.')) return fileAt(join(dirname(file), specifier));
    const [, name = '', rest = ''] = /^((?:@[^/]+\/)?[^/]+)(.*)$/.exec(specifier) ?? [];
    if (!home.dependencies.has(name)) return null;
    const folder = this.#packageFolder(name, dirname(file));
    if (folder === null || !this.#runsOnHost(folder)) return null;
    this.#packages.set(name, folder);
    return packageFile(folder, rest === '' ? '.' : `.${rest}`, home.kind);
  }

  /** The nearest `node_modules` upwards, not beyond the checkout. */
  #packageFolder(name: string, from: string): string | null {
    for (let folder = from; folder.startsWith(this.#order.root); folder = dirname(folder)) {
      const found = join(folder, 'node_modules', name);
      if (this.#manifest(found) !== null) return found;
    }
    return null;
  }

  #runsOnHost(folder: string): boolean {
    const platforms = this.#manifest(folder)?.platforms;
    const allows = (listed: readonly string[] | null | undefined, wanted: string): boolean =>
      listed === null || listed === undefined || listed.includes(wanted);
    return (
      allows(platforms?.os, 'linux') &&
      allows(platforms?.cpu, this.#order.architecture) &&
      allows(platforms?.libc, 'glibc')
    );
  }
}

interface Home {
  readonly folder: string;
  readonly kind: ImportKind;
  readonly dependencies: ReadonlySet<string>;
}

/** import … from 'x', export … from 'x', import 'x', import('x'), new URL('./x.js', import.meta.url). */
const importForm = /\b(?:(?:from|import)\s*|(?:import|URL)\(\s*)(['"])([^'"\n]+)\1/g;
/** require('x'), and the names that bundlers give it. */
const requireForm = /\b\w*[rR]equire\w*\(\s*(['"])([^'"\n]+)\1/g;

/**
 * What a program's text imports, parts of Node left out.
 *
 * @param forms `import` for a program that is known to have nothing else, and may call something of its own `require`
 */
export function specifiersIn(text: string, forms: 'all' | 'import'): readonly string[] {
  const patterns = forms === 'all' ? [importForm, requireForm] : [importForm];
  const found = patterns.flatMap((form) => [...text.matchAll(form)].map(([, , specifier = '']) => specifier));
  return [...new Set(found)].filter((specifier) => isSpecifier(specifier) && !isBuiltin(specifier));
}

const isSpecifier = (text: string): boolean => /^(\.{1,2}\/[^*?]*|@?[a-z0-9][\w@./-]*)$/i.test(text);

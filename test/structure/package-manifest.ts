/** package.json, its lock and the documents agree with each other and with the code. */
import { posix } from 'node:path';
import { importsOf, packageOf } from './imports.ts';
import { isProduction, matches, typescriptFiles, type Finding, type HouseFile } from './house-files.ts';

export interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  /** Whether a package's installation script may run, by package. */
  readonly allowScripts: Readonly<Record<string, boolean>>;
}

/** What npm's lock file says of one installed package. */
export interface LockedPackage {
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const manifestPath = 'package.json';
const wrong = (says: string): Finding => ({ path: manifestPath, line: 0, says });

/** Versions that leave a choice open. */
export function loosePins({ dependencies, devDependencies }: Manifest): readonly Finding[] {
  return Object.entries({ ...dependencies, ...devDependencies })
    .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    .map(([name, version]) => wrong(`${name} is not pinned: ${version}`));
}

/** Packages that are imported and not declared, or by production and declared for development only; and unused ones. */
export function wrongPackages(manifest: Manifest, files: readonly HouseFile[]): readonly Finding[] {
  const sources = typescriptFiles(files);
  const undeclared = sources.flatMap((file) => {
    const open = { ...manifest.dependencies, ...(runsForUsers(file.path) ? {} : manifest.devDependencies) };
    return importsOf(file).flatMap(({ specifier, line }) => {
      const name = packageOf(specifier);
      if (name === null || Object.hasOwn(open, name)) return [];
      return [{ path: file.path, line, says: `imports ${name}, which package.json does not give it` }];
    });
  });
  const production = sources.filter(({ path }) => isProduction(path)).map(({ text }) => text);
  const unused = Object.keys(manifest.dependencies).filter(
    (name) => !production.some((text) => text.includes(`'${name}`)),
  );
  return [...undeclared, ...unused.map((name) => wrong(`nothing in production uses ${name}`))];
}

/** What grafana/ builds is committed: users have its files, not its program. */
const runsForUsers = (path: string): boolean => isProduction(path) && !path.startsWith('grafana/');

/** Packages with an installation script about which `allowScripts` says neither yes nor no, and entries for none. */
export function undecidedScripts(
  { allowScripts }: Manifest,
  packages: Readonly<Record<string, LockedPackage>>,
): readonly Finding[] {
  const withScript = Object.entries(packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([path]) => path.replace(/^.*node_modules\//, ''));
  const undecided = withScript.filter((name) => !Object.hasOwn(allowScripts, name));
  const needless = Object.keys(allowScripts).filter((name) => !withScript.includes(name));
  return [
    ...undecided.map((name) => wrong(`allowScripts does not say whether ${name} may run its installation script`)),
    ...needless.map((name) => wrong(`allowScripts names ${name}, which has no installation script`)),
  ];
}

/**
 * Packages that others depend on and the lock file does not name, those of other platforms included: `npm ci` refuses a
 * lock file without them, and npm leaves them out where it cannot fetch them.
 */
export function unlockedPackages(packages: Readonly<Record<string, LockedPackage>>): readonly Finding[] {
  return Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !foldersAbove(path).some((folder) => Object.hasOwn(packages, `${folder}node_modules/${name}`)))
      .map((name) => ({ path: 'package-lock.json', line: 0, says: `${path} depends on ${name}, which is not locked` })),
  );
}

/** Where node looks for what a package imports: beside it, then further up; each ends in a slash or is the root. */
function foldersAbove(path: string): readonly string[] {
  if (path === '') return [''];
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('node_modules/')));
  return [`${path}/`, ...(parent === '' ? [''] : foldersAbove(parent.replace(/\/$/, '')))];
}

/** Dependencies that ARCHITECTURE.md gives no reason for. */
export function unexplainedPackages({ dependencies }: Manifest, architecture: HouseFile): readonly Finding[] {
  return Object.keys(dependencies)
    .filter((name) => !architecture.text.includes(name))
    .map((name) => ({ path: architecture.path, line: 0, says: `does not say why ${name} is here` }));
}

/** Commands in documents that package.json does not have. */
export function unknownCommands({ scripts }: Manifest, files: readonly HouseFile[]): readonly Finding[] {
  return files
    .flatMap((file) => matches(file, /\bnpm (run (-s |--silent )?[a-z][\w:-]*|test\b)/g))
    .filter(({ found }) => !Object.hasOwn(scripts, found.split(' ').at(-1) ?? ''))
    .map(({ path, line, found }) => ({ path, line, says: `names \`${found}\`, which package.json does not have` }));
}

/** Documents that are named and do not exist, beside the file that names them or at the root. */
export function unknownDocuments(files: readonly HouseFile[]): readonly Finding[] {
  const paths = new Set(files.map(({ path }) => path));
  const isThere = (from: string, name: string): boolean =>
    paths.has(name) || paths.has(posix.join(posix.dirname(from), name));
  return files
    .filter(({ path }) => !path.startsWith('test/structure/'))
    .flatMap((file) => matches(file, /(?<![\w/:*.-])[\w./-]*[A-Z]{3,}\.md\b/g))
    .filter(({ path, found }) => !isThere(path, found))
    .map(({ path, line, found }) => ({ path, line, says: `names ${found}, which is not there` }));
}

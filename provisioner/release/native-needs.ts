/**
 * What the programs of a release want of a host beyond the kernel: a C library that is new enough, and some libraries that
 * a minimal system may lack.
 *
 * Those (`libstdc++`, `libgcc_s` and whatever else is found needed) travel in the release's `lib/`, from the operator's own
 * machine. A host that has them itself, new enough, gets the release without `lib/`: its own always fit its C library,
 * whereas the operator's may want a newer one. `host-libraries.ts` asks the host and decides.
 */
import type { ElfFile } from './elf-file.ts';

export interface Version {
  readonly major: number;
  readonly minor: number;
}

export interface NativeNeeds {
  /** The newest version of glibc that a program or library of the release wants, `lib/` left out. */
  readonly glibc: GlibcNeed;
  /** Libraries that neither glibc nor the release itself has. */
  readonly libraries: readonly LibraryNeed[];
  /** What `lib/` wants. */
  readonly shippedGlibc: GlibcNeed;
}

export interface GlibcNeed {
  readonly version: Version;
  /** Path in the release of a file that wants it; empty where nothing wants any. */
  readonly wantedBy: string;
}

export interface LibraryNeed {
  /** As the dynamic linker looks for it: `libstdc++.so.6`. */
  readonly name: string;
  /** The newest version of each of its families of symbols: `GLIBCXX_3.4.29`, `CXXABI_1.3.13`. */
  readonly versions: readonly string[];
}

/** A file of the release and what it asks for. */
export interface ReleaseElf {
  readonly path: string;
  readonly elf: ElfFile;
}

/** glibc's own, and the dynamic linker. */
const ofGlibc = /^(ld-linux.*|lib(c|m|dl|pthread|rt|resolv|util|anl|mvec)\.so\.\d+)$/;
/** CUDA's: the driver and the runtime that a host with a GPU brings. */
const ofCuda = /^lib(cuda|cudart|cublas|cublasLt|nvidia-.*)\.so/;

/** Libraries that are neither part of glibc or CUDA nor among the files themselves. */
export function missingLibraries(files: readonly ReleaseElf[]): readonly LibraryNeed[] {
  const own = new Set(files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1)));
  const wanted = new Map<string, Set<string>>();
  for (const { elf } of files) {
    for (const name of elf.needed) {
      if (own.has(name) || ofGlibc.test(name) || ofCuda.test(name)) continue;
      const versions = wanted.get(name) ?? new Set();
      for (const version of elf.versions.get(name) ?? []) versions.add(version);
      wanted.set(name, versions);
    }
  }
  return [...wanted]
    .map(([name, versions]) => ({ name, versions: newestOfEach([...versions]) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

export function glibcNeed(files: readonly ReleaseElf[]): GlibcNeed {
  let need: GlibcNeed = { version: { major: 0, minor: 0 }, wantedBy: '' };
  for (const { path, elf } of files) {
    for (const version of [...elf.versions.values()].flat()) {
      const wanted = glibcVersion(version);
      if (wanted !== null && isOlder(need.version, wanted)) need = { version: wanted, wantedBy: path };
    }
  }
  return need;
}

export const isOlder = (one: Version, other: Version): boolean =>
  one.major < other.major || (one.major === other.major && one.minor < other.minor);

export const versionText = ({ major, minor }: Version): string => `${major}.${minor}`;

function glibcVersion(name: string): Version | null {
  const [, major, minor] = /^GLIBC_(\d+)\.(\d+)/.exec(name) ?? [];
  return major === undefined || minor === undefined ? null : { major: Number(major), minor: Number(minor) };
}

/** A library that has a version of a family has all older ones. */
function newestOfEach(versions: readonly string[]): readonly string[] {
  const newest = new Map<string, string>();
  for (const version of versions) {
    const family = version.slice(0, version.lastIndexOf('_'));
    const known = newest.get(family);
    if (known === undefined || compareNumbers(known, version) < 0) newest.set(family, version);
  }
  return [...newest.values()].sort();
}

/** Compares names by the numbers in them, in order. */
function compareNumbers(one: string, other: string): number {
  const [ones, others] = [one, other].map((text) => (text.match(/\d+/g) ?? []).map(Number));
  for (let index = 0; index < Math.max(ones?.length ?? 0, others?.length ?? 0); index += 1) {
    const difference = (ones?.[index] ?? -1) - (others?.[index] ?? -1);
    if (difference !== 0) return difference;
  }
  return 0;
}

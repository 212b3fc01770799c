/**
 * Reads what a program or library asks of the machine it runs on: the processor, the libraries, and the versions of their
 * symbols.
 *
 * Source of the formats: System V ABI (ELF-64), and the Linux Standard Base for the symbol versions. Only little-endian
 * files of 64 bits are read further; others are told apart by `machine`.
 */
import { closeSync, openSync, readSync } from 'node:fs';

export interface ElfFile {
  readonly machine: 'x64' | 'arm64' | 'other';
  /** Names of libraries, as the dynamic linker looks for them. */
  readonly needed: readonly string[];
  /** Versions of symbols by library, such as `GLIBC_2.34` of `libc.so.6`. */
  readonly versions: ReadonlyMap<string, readonly string[]>;
}

const headerBytes = 64;
const programHeaderBytes = 56;
const dynamicEntryBytes = 16;
/** The longest tables of names in use have some megabytes. */
const mostBytes = 64 * 1024 * 1024;

const machines: ReadonlyMap<number, ElfFile['machine']> = new Map([
  [62, 'x64'],
  [183, 'arm64'],
]);

const tags = { needed: 1, names: 5, namesBytes: 10, versions: 0x6fff_fffe, versionCount: 0x6fff_ffff };

/** `null` where the file is no ELF file. */
export function readElf(path: string): ElfFile | null {
  const file = openSync(path, 'r');
  try {
    const read: ReadAt = (offset, bytes) => {
      const buffer = Buffer.alloc(Math.min(bytes, mostBytes));
      return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, offset));
    };
    return parseElf(read);
  } finally {
    closeSync(file);
  }
}

/** Bytes at an offset; fewer where the file ends. */
type ReadAt = (offset: number, bytes: number) => Buffer;

interface Segment {
  readonly isLoaded: boolean;
  readonly isDynamic: boolean;
  readonly offset: number;
  readonly address: number;
  readonly bytes: number;
}

function parseElf(read: ReadAt): ElfFile | null {
  const header = read(0, headerBytes);
  if (header.length < headerBytes || header.toString('latin1', 0, 4) !== '\x7fELF') return null;
  const isReadable = header[4] === 2 && header[5] === 1;
  if (!isReadable) return { machine: 'other', needed: [], versions: new Map() };
  const machine = machines.get(header.readUInt16LE(18)) ?? 'other';
  const segments = segmentsOf(header, read);
  const dynamic = segments.find(({ isDynamic }) => isDynamic);
  if (dynamic === undefined) return { machine, needed: [], versions: new Map() };
  const entries = dynamicEntries(read(dynamic.offset, dynamic.bytes));
  const value = (tag: number): number => entries.find((entry) => entry.tag === tag)?.value ?? 0;
  const names = read(offsetOf(value(tags.names), segments), value(tags.namesBytes));
  const needed = entries.filter(({ tag }) => tag === tags.needed).map((entry) => nameAt(names, entry.value));
  const count = value(tags.versionCount);
  const versions =
    count === 0
      ? new Map<string, string[]>()
      : versionsAt(read, offsetOf(value(tags.versions), segments), { count, names });
  return { machine, needed, versions };
}

function segmentsOf(header: Buffer, read: ReadAt): readonly Segment[] {
  const count = header.readUInt16LE(56);
  const table = read(Number(header.readBigUInt64LE(32)), count * programHeaderBytes);
  return Array.from({ length: Math.floor(table.length / programHeaderBytes) }, (_none, index) => {
    const at = index * programHeaderBytes;
    const kind = table.readUInt32LE(at);
    const number = (offset: number): number => Number(table.readBigUInt64LE(at + offset));
    return { isLoaded: kind === 1, isDynamic: kind === 2, offset: number(8), address: number(16), bytes: number(32) };
  });
}

function dynamicEntries(table: Buffer): readonly { readonly tag: number; readonly value: number }[] {
  return Array.from({ length: Math.floor(table.length / dynamicEntryBytes) }, (_none, index) => ({
    tag: Number(table.readBigUInt64LE(index * dynamicEntryBytes)),
    value: Number(table.readBigUInt64LE(index * dynamicEntryBytes + 8)),
  }));
}

/** Where in the file the bytes of an address in memory stand. */
function offsetOf(address: number, segments: readonly Segment[]): number {
  const holds = ({ isLoaded, address: start, bytes }: Segment): boolean =>
    isLoaded && address >= start && address < start + bytes;
  const segment = segments.find(holds);
  return segment === undefined ? 0 : address - segment.address + segment.offset;
}

function nameAt(names: Buffer, offset: number): string {
  const end = names.indexOf(0, offset);
  return names.toString('utf8', offset, end === -1 ? names.length : end);
}

interface VersionTable {
  readonly count: number;
  readonly names: Buffer;
}

/** A list of libraries, each with a list of versions; both are chained by relative offsets. */
function versionsAt(
  read: ReadAt,
  start: number,
  { count, names }: VersionTable,
): ReadonlyMap<string, readonly string[]> {
  const versions = new Map<string, string[]>();
  let at = start;
  for (let index = 0; index < count; index += 1) {
    const library = read(at, 16);
    if (library.length < 16) break;
    const name = nameAt(names, library.readUInt32LE(4));
    const found = versions.get(name) ?? [];
    let auxiliaryAt = at + library.readUInt32LE(8);
    for (let left = library.readUInt16LE(2); left > 0; left -= 1) {
      const auxiliary = read(auxiliaryAt, 16);
      if (auxiliary.length < 16) break;
      found.push(nameAt(names, auxiliary.readUInt32LE(8)));
      auxiliaryAt += auxiliary.readUInt32LE(12);
    }
    versions.set(name, found);
    at += library.readUInt32LE(12);
  }
  return versions;
}

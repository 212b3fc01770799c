/**
 * The header of one GGUF file: metadata and tensor table, read and checked without touching a weight.
 *
 * libllama ends the process on some malformed files, so everything it would assert about the format is checked here
 * first. A number from the file is bounded before anything is allocated or skipped by it. Bad content of any kind ends
 * in a `P4Error`, never in another exception.
 *
 * Format: `ggml/docs/gguf.md` and `ggml/src/gguf.cpp` of llama.cpp v0.5.0, versions 2 and 3, little-endian.
 */
import type { FileHandle } from 'node:fs/promises';
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { ggmlType, tensorBytes, type GgmlType } from './ggml-type.ts';
import {
  arrayTypeCode,
  elementBytes,
  elementType,
  unsignedOf,
  type GgufElementType,
  type GgufMetadata,
  type GgufValue,
} from './gguf-value.ts';
import { HeaderWindow, type HeaderCursor } from './header-window.ts';

export interface GgufTensor {
  readonly name: string;
  readonly type: GgmlType;
  /** Elements per dimension, the contiguous one first; 1 to 4 dimensions. */
  readonly shape: readonly number[];
  /** First byte, counted from the beginning of the file. */
  readonly offset: number;
  readonly bytes: number;
}

export interface GgufHeader {
  readonly version: number;
  /** Every tensor begins at a multiple of this, counted from the beginning of the weights; a power of two. */
  readonly alignment: number;
  readonly metadata: GgufMetadata;
  readonly tensors: readonly GgufTensor[];
  /** First byte of the weights. */
  readonly weightsOffset: number;
}

/** What an error about a file says of it. */
interface Fault {
  readonly offset: number;
  readonly found: string;
  readonly expected: string;
}

const magic = Buffer.from('GGUF');
const defaultAlignment = 32;
const greatestAlignment = 1024 * 1024;
/** llama.cpp's GGML_MAX_NAME, its terminating zero included. */
const tensorNameBytes = 64;
const greatestDimensions = 4;
/** Above any tensor there is, and low enough that byte counts stay exact. */
const greatestElements = 2 ** 46;

/**
 * Reads and checks a file's header.
 *
 * @param file the path, for messages
 * @param fileBytes size of the file
 * @throws GGUF_NOT_GGUF, GGUF_BIG_ENDIAN, GGUF_VERSION, GGUF_TRUNCATED or GGUF_INVALID
 */
export async function readHeader(handle: FileHandle, file: string, fileBytes: number): Promise<GgufHeader> {
  const window = new HeaderWindow(handle, file, fileBytes);
  await checkMagic(handle, file, fileBytes);
  const { version, tensorCount, keyCount } = await window.piece((cursor) => readCounts(cursor, file));
  const metadata = new Map<string, GgufValue>();
  for (let index = 0; index < keyCount; index += 1) {
    const { key, value } = await window.piece((cursor) => readEntry(cursor, file, `key ${index + 1} of ${keyCount}`));
    if (metadata.has(key)) throw invalid(file, { offset: window.offset, found: `key ${key} twice`, expected: 'once' });
    metadata.set(key, value);
  }
  const alignment = readAlignment(metadata, file);
  const entries: TensorEntry[] = [];
  for (let index = 0; index < tensorCount; index += 1) {
    const what = `tensor ${index + 1} of ${tensorCount}`;
    entries.push(await window.piece((cursor) => readTensor(cursor, file, what)));
  }
  const weightsOffset = align(window.offset, alignment);
  const tensors = placeTensors({ file, fileBytes, entries, weightsOffset, alignment });
  return { version, alignment, metadata, tensors, weightsOffset };
}

export const align = (offset: number, alignment: number): number => Math.ceil(offset / alignment) * alignment;

/** A cut short magic is a truncated file; another one is not a GGUF. */
async function checkMagic(handle: FileHandle, file: string, fileBytes: number): Promise<void> {
  const found = Buffer.alloc(Math.min(magic.length, fileBytes));
  const { bytesRead } = await handle.read(found, 0, found.length, 0);
  if (!magic.subarray(0, bytesRead).equals(found.subarray(0, bytesRead))) {
    throw new P4Error('GGUF_NOT_GGUF', { file, found: printable(found), expected: magic.toString() });
  }
}

function readCounts(cursor: HeaderCursor, file: string): { version: number; tensorCount: number; keyCount: number } {
  cursor.bytes(magic.length, 'the magic GGUF');
  const version = cursor.u32('the version');
  if (version !== 0 && (version & 0xffff) === 0) {
    throw new P4Error('GGUF_BIG_ENDIAN', { file, found: `version bytes 0x${version.toString(16)}` });
  }
  if (version !== 2 && version !== 3) throw new P4Error('GGUF_VERSION', { file, found: version, expected: '2 or 3' });
  const tensorCount = cursor.u64('the number of tensors');
  const keyCount = cursor.u64('the number of keys');
  bound(file, cursor, { count: tensorCount, atMost: limits.ggufTensors, of: 'tensors' });
  bound(file, cursor, { count: keyCount, atMost: limits.ggufKeys, of: 'keys' });
  return { version, tensorCount, keyCount };
}

function readEntry(cursor: HeaderCursor, file: string, what: string): { key: string; value: GgufValue } {
  const key = readName(cursor, file, { what, atMost: limits.ggufKeyBytes });
  return { key, value: readValue(cursor, file, `the value of ${key}`) };
}

function readName(cursor: HeaderCursor, file: string, rule: { what: string; atMost: number }): string {
  const offset = cursor.offset;
  const length = cursor.u64(`the name of ${rule.what}`);
  bound(file, cursor, { count: length, atMost: rule.atMost, of: `bytes in the name of ${rule.what}` });
  const bytes = cursor.bytes(length, `the name of ${rule.what}`);
  const name = bytes.toString('utf8');
  if (length === 0 || !Buffer.from(name).equals(bytes) || name.includes('\0')) {
    throw invalid(file, { offset, found: printable(bytes), expected: `a name in UTF-8 for ${rule.what}` });
  }
  return name;
}

function readValue(cursor: HeaderCursor, file: string, what: string): GgufValue {
  const code = cursor.u32(`the type of ${what}`);
  if (code !== arrayTypeCode) {
    const type = knownType(cursor, file, { code, what });
    return { kind: 'single', type, bytes: Buffer.from(readElements(cursor, file, { type, length: 1, what })) };
  }
  const type = knownType(cursor, file, { code: cursor.u32(`the element type of ${what}`), what });
  const length = cursor.u64(`the length of ${what}`);
  bound(file, cursor, { count: length, atMost: limits.ggufArrayElements, of: `elements in ${what}` });
  return { kind: 'array', type, length, bytes: Buffer.from(readElements(cursor, file, { type, length, what })) };
}

function knownType(
  cursor: HeaderCursor,
  file: string,
  { code, what }: { code: number; what: string },
): GgufElementType {
  const type = elementType(code);
  if (type === null) {
    throw invalid(file, { offset: cursor.offset, found: `type ${code} of ${what}`, expected: 'a known element type' });
  }
  return type;
}

function readElements(
  cursor: HeaderCursor,
  file: string,
  { type, length, what }: { type: GgufElementType; length: number; what: string },
): Buffer {
  const width = elementBytes[type];
  if (width !== null) return cursor.bytes(length * width, what);
  const begin = cursor.offset;
  cursor.require(length * 8, what);
  for (let index = 0; index < length; index += 1) {
    const bytes = cursor.u64(what);
    if (bytes > limits.ggufTextBytes)
      bound(file, cursor, { count: bytes, atMost: limits.ggufTextBytes, of: `bytes in ${what}` });
    cursor.bytes(bytes, what);
  }
  const count = cursor.offset - begin;
  cursor.offset = begin;
  return cursor.bytes(count, what);
}

function readAlignment(metadata: GgufMetadata, file: string): number {
  const value = metadata.get('general.alignment');
  if (value === undefined) return defaultAlignment;
  const alignment = value.kind === 'single' && value.type === 'u32' ? unsignedOf(value) : null;
  if (alignment === null || alignment === 0 || alignment > greatestAlignment || (alignment & (alignment - 1)) !== 0) {
    const found = alignment === null ? value.type : String(alignment);
    const expected = `a u32 that is a power of two, at most ${greatestAlignment}`;
    throw invalid(file, { offset: 0, found: `general.alignment ${found}`, expected });
  }
  return alignment;
}

interface TensorEntry {
  readonly name: string;
  readonly type: GgmlType;
  readonly shape: readonly number[];
  /** Counted from the beginning of the weights. */
  readonly offset: number;
}

function readTensor(cursor: HeaderCursor, file: string, what: string): TensorEntry {
  const name = readName(cursor, file, { what, atMost: tensorNameBytes - 1 });
  const dimensions = cursor.u32(`the dimensions of ${name}`);
  const shape: number[] = [];
  if (dimensions === 0 || dimensions > greatestDimensions) {
    const found = `${name} with ${dimensions} dimensions`;
    throw invalid(file, { offset: cursor.offset, found, expected: `1 to ${greatestDimensions}` });
  }
  let elements = 1;
  for (let index = 0; index < dimensions; index += 1) {
    const size = cursor.u64(`the shape of ${name}`);
    elements *= size;
    if (size === 0 || size > greatestElements || elements > greatestElements) {
      const found = `${name} with ${size} elements in dimension ${index}`;
      throw invalid(file, { offset: cursor.offset, found, expected: `1 to ${greatestElements} elements in all` });
    }
    shape.push(size);
  }
  const code = cursor.u32(`the type of ${name}`);
  const type = ggmlType(code);
  if (type === null)
    throw invalid(file, { offset: cursor.offset, found: `${name} of type ${code}`, expected: 'a known type' });
  if ((shape[0] ?? 0) % type.blockElements !== 0) {
    const found = `${name} with rows of ${shape[0] ?? 0}`;
    const expected = `a multiple of ${type.blockElements}, the block of ${type.name}`;
    throw invalid(file, { offset: cursor.offset, found, expected });
  }
  return { name, type, shape, offset: cursor.u64(`the offset of ${name}`) };
}

interface Placement {
  readonly file: string;
  readonly fileBytes: number;
  readonly entries: readonly TensorEntry[];
  readonly weightsOffset: number;
  readonly alignment: number;
}

/** llama.cpp insists on tensors that follow each other without gap or overlap, each padded to the alignment. */
function placeTensors({ file, fileBytes, entries, weightsOffset, alignment }: Placement): GgufTensor[] {
  const names = new Set<string>();
  let expected = 0;
  return entries.map(({ name, type, shape, offset }) => {
    if (names.has(name))
      throw invalid(file, { offset: weightsOffset, found: `tensor ${name} twice`, expected: 'once' });
    names.add(name);
    if (offset !== expected) {
      const found = `${name} at ${offset} of the weights`;
      throw invalid(file, { offset: weightsOffset, found, expected: `at ${expected}, right after the one before it` });
    }
    const bytes = tensorBytes(type, shape);
    const begin = weightsOffset + offset;
    if (begin + bytes > fileBytes) {
      const facts = { expected: `tensor ${name}, up to byte ${begin + bytes}`, fileBytes };
      throw new P4Error('GGUF_TRUNCATED', { file, offset: begin, ...facts });
    }
    expected = align(offset + bytes, alignment);
    return { name, type, shape, offset: begin, bytes };
  });
}

function bound(file: string, cursor: HeaderCursor, rule: { count: number; atMost: number; of: string }): void {
  if (rule.count <= rule.atMost) return;
  throw invalid(file, {
    offset: cursor.offset,
    found: `${rule.count} ${rule.of}`,
    expected: `at most ${rule.atMost}`,
  });
}

const invalid = (file: string, fault: Fault): P4Error => new P4Error('GGUF_INVALID', { file, ...fault });

const printable = (bytes: Buffer): string => JSON.stringify(bytes.subarray(0, 32).toString('latin1'));

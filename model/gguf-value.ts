/**
 * A metadata value as its exact bytes, decoded only when asked.
 *
 * What is not looked at is carried unchanged: a vocabulary of 256 Ki tokens is one buffer, an unusual NaN and text
 * that is not UTF-8 survive. Array elements are decoded by `elementsOf`, which costs in proportion to their number.
 */
import { assert, present } from '../protocol/assert.ts';

export type GgufElementType =
  'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'f32' | 'bool' | 'string' | 'u64' | 'i64' | 'f64';

/** `bytes` is the value as the file holds it, after its type (and, of an array, its length). */
export type GgufValue =
  | { readonly kind: 'single'; readonly type: GgufElementType; readonly bytes: Buffer }
  | { readonly kind: 'array'; readonly type: GgufElementType; readonly length: number; readonly bytes: Buffer };

/** Metadata in the order of the file. */
export type GgufMetadata = ReadonlyMap<string, GgufValue>;

export type GgufElement = number | bigint | boolean | string;

/** Number of each element type in the file; 9 stands for an array. */
export const elementTypeCodes: Readonly<Record<GgufElementType, number>> = {
  u8: 0,
  i8: 1,
  u16: 2,
  i16: 3,
  u32: 4,
  i32: 5,
  f32: 6,
  bool: 7,
  string: 8,
  u64: 10,
  i64: 11,
  f64: 12,
};
export const arrayTypeCode = 9;

/** Bytes of one element; `null` for text, which carries its own length. */
export const elementBytes: Readonly<Record<GgufElementType, number | null>> = {
  u8: 1,
  i8: 1,
  u16: 2,
  i16: 2,
  u32: 4,
  i32: 4,
  f32: 4,
  bool: 1,
  string: null,
  u64: 8,
  i64: 8,
  f64: 8,
};

const elementTypes: readonly GgufElementType[] = [
  'u8',
  'i8',
  'u16',
  'i16',
  'u32',
  'i32',
  'f32',
  'bool',
  'string',
  'u64',
  'i64',
  'f64',
];
const typesByCode: ReadonlyMap<number, GgufElementType> = new Map(
  elementTypes.map((type) => [elementTypeCodes[type], type]),
);

export const elementType = (code: number): GgufElementType | null => typesByCode.get(code) ?? null;

type Decoder = (bytes: Buffer, offset: number) => GgufElement;

const decoders: Readonly<Record<GgufElementType, Decoder>> = {
  u8: (bytes, offset) => bytes.readUInt8(offset),
  i8: (bytes, offset) => bytes.readInt8(offset),
  u16: (bytes, offset) => bytes.readUInt16LE(offset),
  i16: (bytes, offset) => bytes.readInt16LE(offset),
  u32: (bytes, offset) => bytes.readUInt32LE(offset),
  i32: (bytes, offset) => bytes.readInt32LE(offset),
  f32: (bytes, offset) => bytes.readFloatLE(offset),
  bool: (bytes, offset) => bytes.readUInt8(offset) !== 0,
  string: (bytes, offset) => bytes.toString('utf8', offset + 8, offset + 8 + textBytes(bytes, offset)),
  u64: (bytes, offset) => bytes.readBigUInt64LE(offset),
  i64: (bytes, offset) => bytes.readBigInt64LE(offset),
  f64: (bytes, offset) => bytes.readDoubleLE(offset),
};

/** Length of the text at `offset`; the reader has bounded it far below 2^53. */
const textBytes = (bytes: Buffer, offset: number): number =>
  bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * 0x1_0000_0000;

/** The single value, decoded; `null` for an array and for nothing. */
export function singleOf(value: GgufValue | undefined): GgufElement | null {
  return value?.kind === 'single' ? decoders[value.type](value.bytes, 0) : null;
}

/** A whole number of any integer type, from 0 to 2^53-1; `null` for anything else. */
export function unsignedOf(value: GgufValue | undefined): number | null {
  const single = singleOf(value);
  if (value?.type === 'f32' || value?.type === 'f64') return null;
  const whole = typeof single === 'bigint' ? Number(single) : single;
  return typeof whole === 'number' && whole >= 0 && Number.isSafeInteger(whole) ? whole : null;
}

export function numberOf(value: GgufValue | undefined): number | null {
  const single = singleOf(value);
  return typeof single === 'number' ? single : null;
}

export function textOf(value: GgufValue | undefined): string | null {
  const single = singleOf(value);
  return typeof single === 'string' ? single : null;
}

/** Every element of an array, decoded; a single value is one element. */
export function elementsOf(value: GgufValue): readonly GgufElement[] {
  const decode = decoders[value.type];
  const elements: GgufElement[] = [];
  const length = value.kind === 'array' ? value.length : 1;
  let offset = 0;
  for (let index = 0; index < length; index += 1) {
    elements.push(decode(value.bytes, offset));
    offset += sizeAt(value, offset);
  }
  return elements;
}

/**
 * The numbers of a value that is one number or one for each layer; nothing gives none. A list longer than `atMost` is
 * not decoded: it stands for one NaN, which fails every comparison.
 */
export function numbersOf(value: GgufValue | undefined, atMost: number): readonly number[] {
  if (value === undefined) return [];
  if (value.kind === 'array' && value.length > atMost) return [Number.NaN];
  return elementsOf(value).map(Number);
}

/** `count` elements of an array from `first`, undecoded. The range must lie within the array. */
export function cutArray(value: GgufValue, first: number, count: number): GgufValue {
  assert(value.kind === 'array' && first + count <= value.length, 'the range lies within the array');
  let begin = 0;
  for (let index = 0; index < first; index += 1) begin += sizeAt(value, begin);
  let end = begin;
  for (let index = 0; index < count; index += 1) end += sizeAt(value, end);
  return { kind: 'array', type: value.type, length: count, bytes: value.bytes.subarray(begin, end) };
}

const sizeAt = (value: GgufValue, offset: number): number =>
  elementBytes[value.type] ?? 8 + textBytes(value.bytes, offset);

/** An unsigned 32-bit value; most of llama.cpp's keys insist on this type. */
export function u32(value: number): GgufValue {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return { kind: 'single', type: 'u32', bytes };
}

export function f32(value: number): GgufValue {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return { kind: 'single', type: 'f32', bytes };
}

export const text = (value: string): GgufValue => ({ kind: 'single', type: 'string', bytes: encodedText(value) });

export const flags = (values: readonly boolean[]): GgufValue => ({
  kind: 'array',
  type: 'bool',
  length: values.length,
  bytes: Buffer.from(values.map((value) => (value ? 1 : 0))),
});

export function encodedText(value: string): Buffer {
  const length = Buffer.byteLength(value);
  const bytes = Buffer.alloc(8 + length);
  bytes.writeBigUInt64LE(BigInt(length));
  bytes.write(value, 8);
  return bytes;
}

/** The value under a key that a caller has already checked. */
export const valueAt = (metadata: GgufMetadata, key: string): GgufValue =>
  present(metadata.get(key), `metadata has ${key}`);

/**
 * The names and numbers that identify things, branded so that one is never taken for another.
 *
 * A value gets its brand in a parser here, once, at the edge where it came in; inside, types are trusted.
 */
import { P4Error } from './errors.ts';

declare const brand: unique symbol;
type Brand<Value, Name extends string> = Value & { readonly [brand]: Name };

/** Name of a ring: lower-case letters, digits and dashes, at most 63 characters (it becomes part of unit and file names). */
export type RingName = Brand<string, 'RingName'>;
/** Name of a host as plan and inventory write it; the common name of its certificate. */
export type HostName = Brand<string, 'HostName'>;
/** Position of a stage in its ring, from 0 (the head). */
export type NodeIndex = Brand<number, 'NodeIndex'>;
/** The unsigned 64-bit number of one load of one ring (G1). A decimal string in JSON, YAML and protobuf. */
export type Generation = Brand<bigint, 'Generation'>;
/** The random name of a load that durable records carry instead of its generation (G4): 32 hexadecimal digits. */
export type LoadId = Brand<string, 'LoadId'>;
/** A session of one load, counted from 1 by the head. */
export type SessionId = Brand<number, 'SessionId'>;
/** A request of one load, counted from 1 by the head. */
export type RequestId = Brand<number, 'RequestId'>;
/** A KV lease's sequence number, the same on every stage of a ring: 0 to the plan's sessions - 1. */
export type SlotIndex = Brand<number, 'SlotIndex'>;
/** A kept prefix's number, the same on every stage of a ring: 0 to the plan's kept prefixes - 1. */
export type KeptIndex = Brand<number, 'KeptIndex'>;
/** A token's number in the model's vocabulary. */
export type TokenId = Brand<number, 'TokenId'>;
/** Content address of a slice: 64 hexadecimal digits, sha256 over the model's hash, the layer range and the cutter's version. */
export type SliceId = Brand<string, 'SliceId'>;

const namePattern = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export const isName = (text: string): boolean => namePattern.test(text);

export const ringName = (text: string): RingName => named(text, 'ring') as RingName;
export const hostName = (text: string): HostName => named(text, 'host') as HostName;
export const nodeIndex = (index: number): NodeIndex => uint32(index, 'node index') as NodeIndex;
export const sessionId = (id: number): SessionId => uint32(id, 'session') as SessionId;
export const requestId = (id: number): RequestId => uint32(id, 'request') as RequestId;
export const slotIndex = (index: number): SlotIndex => uint32(index, 'slot') as SlotIndex;
export const keptIndex = (index: number): KeptIndex => uint32(index, 'kept prefix') as KeptIndex;
export const tokenId = (id: number): TokenId => uint32(id, 'token id') as TokenId;

export const loadId = (text: string): LoadId => hexadecimal(text, 32, 'load id') as LoadId;
export const sliceId = (text: string): SliceId => hexadecimal(text, 64, 'slice id') as SliceId;

/** Parses the decimal form of a generation; anything but an unsigned 64-bit integer above 0 is refused. */
export function generation(text: string): Generation {
  if (!/^[0-9]{1,20}$/.test(text)) throw invalid('generation', text, 'a decimal unsigned 64-bit integer');
  const value = BigInt(text);
  if (value === 0n || value > 0xffff_ffff_ffff_ffffn) throw invalid('generation', text, 'a number from 1 to 2^64-1');
  return value as Generation;
}

/** A node's address as people read it: `host/ring.index`. */
export const nodeAddress = (host: HostName, ring: RingName, index: NodeIndex): string => `${host}/${ring}.${index}`;

/** A request's name as people and records write it: `<load id>.<session>.<request>`. */
export const requestName = (load: LoadId, session: SessionId, request: RequestId): string =>
  `${load}.${session}.${request}`;

function named(text: string, what: string): string {
  if (!isName(text)) throw invalid(`${what} name`, text, 'lower-case letters, digits and dashes, at most 63');
  return text;
}

function uint32(value: number, what: string): number {
  if (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff)
    throw invalid(what, String(value), 'an unsigned 32-bit integer');
  return value;
}

function hexadecimal(text: string, digits: number, what: string): string {
  if (text.length !== digits || !/^[0-9a-f]*$/.test(text)) throw invalid(what, text, `${digits} hexadecimal digits`);
  return text;
}

function invalid(what: string, found: string, expected: string): P4Error {
  return new P4Error('INVALID_ARGUMENT', { what, found, expected });
}

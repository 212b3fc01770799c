/** Changes one bit of one weight in a copy of a slice's file, and puts a ring with that slice to the test. */
import { copyFile, open, rm } from 'node:fs/promises';

import { openModel } from '../../model/model-file.ts';
import { assert, present } from '../../protocol/assert.ts';
import type { BitComparison } from './bit-comparison.ts';
import type { Recording } from './recording.ts';
import { replayRing, type RingComparison } from './replay.ts';
import type { RingCut } from './rings.ts';
import type { SliceShelf } from './slice-shelf.ts';

export interface PlantedBit {
  /** As it is called in the slice's file. */
  readonly tensor: string;
  /** Bytes from the tensor's first. */
  readonly byte: number;
  /** 0 to 7. */
  readonly bit: number;
  /** What the bit is, in words. */
  readonly what: string;
}

/** Elements of one block of Q8_0 and its bytes: a float16 scale, then signed bytes. */
const q8 = { elements: 32, bytes: 34, scaleBytes: 2 } as const;

/**
 * A bit in the middle of a weight, one at its low end, and one in the scale that a block of weights shares, where there is
 * one. The first is meant to matter; the others show how fine the comparison is.
 *
 * @param at which element of the tensor, counted in memory order
 */
export async function plantableBits(slicePath: string, tensor: string, at: number): Promise<PlantedBit[]> {
  const found = present(
    (await openModel(slicePath)).tensors.find(({ name }) => name === tensor),
    'the slice has the tensor',
  );
  const type = found.type.name;
  if (type === 'F16') {
    const byte = at * 2;
    return [
      { tensor, byte: byte + 1, bit: 1, what: 'F16 weight, highest bit of the mantissa' },
      { tensor, byte, bit: 5, what: 'F16 weight, bit 5 of the mantissa' },
      { tensor, byte, bit: 0, what: 'F16 weight, lowest bit of the mantissa' },
    ];
  }
  assert(type === 'Q8_0', `weights of a type that is known here, not ${type}`);
  const block = Math.floor(at / q8.elements) * q8.bytes;
  const weight = block + q8.scaleBytes + (at % q8.elements);
  return [
    { tensor, byte: weight, bit: 5, what: 'Q8_0 weight, bit 5' },
    { tensor, byte: weight, bit: 0, what: 'Q8_0 weight, lowest bit' },
    { tensor, byte: block, bit: 0, what: 'Q8_0 scale of 32 weights, lowest bit' },
  ];
}

/** Copies the slice's file to `target` with that bit changed. */
export async function plantBit(slicePath: string, target: string, { tensor, byte, bit }: PlantedBit): Promise<void> {
  const model = await openModel(slicePath);
  const { offset, bytes } = present(
    model.tensors.find(({ name }) => name === tensor),
    'the slice has the tensor',
  );
  assert(byte < bytes, 'the bit is one of the tensor');
  await copyFile(slicePath, target);
  await changeByte(target, offset + byte, (value) => value ^ (1 << bit));
}

/** Copies the slice's file to `target` with every flag of a list in its metadata turned round. */
export async function plantFlags(slicePath: string, target: string, key: string): Promise<void> {
  const value = present((await openModel(slicePath)).metadata.get(key), 'the slice has the list');
  assert(value.kind === 'array' && value.type === 'bool', 'it is a list of flags');
  await copyFile(slicePath, target);
  const handle = await open(target, 'r+');
  try {
    const header = Buffer.alloc(256 * 1024);
    const { bytesRead } = await handle.read(header, 0, header.length, 0);
    // Key, then the type of the value (4 bytes), of its elements (4) and their number (8).
    const first = header.subarray(0, bytesRead).indexOf(key) + key.length + 16;
    const flags = header.subarray(first, first + value.length);
    assert(flags.equals(value.bytes), 'the list lies there');
    await handle.write(
      flags.map((flag) => 1 - flag),
      0,
      flags.length,
      first,
    );
  } finally {
    await handle.close();
  }
}

export interface PlantedRing {
  readonly cut: RingCut;
  /** Which of the ring's slices is changed. */
  readonly stage: number;
  readonly recordings: readonly Recording[];
  /** Writes the changed copy of a slice's file. */
  readonly plant: (slicePath: string, target: string) => Promise<void>;
}

/** What the comparison says of a ring with one slice changed. */
export async function replayPlanted(
  shelf: SliceShelf,
  { cut, stage, recordings, plant }: PlantedRing,
): Promise<RingComparison> {
  const layers = present(cut[stage], 'the ring has the stage');
  const slicePath = await shelf.cut(layers);
  const target = `${slicePath}.planted`;
  await plant(slicePath, target);
  const planted = await shelf.openFile(layers, target);
  try {
    const slices = await shelf.openRing(cut);
    return replayRing(slices.with(stage, planted), recordings);
  } finally {
    planted.engine.close();
    await rm(target);
  }
}

/** Where a planted bit was seen. */
export function plantedLine({ tensor, what }: PlantedBit, { hops, logits }: RingComparison): string {
  const seen = ({ isExact, text }: BitComparison): string => (isExact ? 'NOT seen' : `seen (${text})`);
  return `${tensor}, ${what}: at the hops ${seen(hops)}; in the logits ${seen(logits)}`;
}

async function changeByte(path: string, offset: number, change: (value: number) => number): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    const byte = Buffer.alloc(1);
    await handle.read(byte, 0, 1, offset);
    byte[0] = change(byte[0] ?? 0);
    await handle.write(byte, 0, 1, offset);
  } finally {
    await handle.close();
  }
}

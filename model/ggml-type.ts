/**
 * The types of tensor elements that GGUF files may name, with the size of their blocks.
 *
 * Source: `enum ggml_type` and the block structures of llama.cpp v0.5.0 (`ggml.h`, `ggml-common.h`). Numbers that are
 * missing here were withdrawn by llama.cpp; a file that uses one is refused.
 */
import { present } from '../protocol/assert.ts';

export interface GgmlType {
  /** The number GGUF files store. */
  readonly code: number;
  readonly name: string;
  /** Elements of one block; a row is a whole number of blocks. */
  readonly blockElements: number;
  readonly blockBytes: number;
}

const rows: readonly (readonly [code: number, name: string, blockElements: number, blockBytes: number])[] = [
  [0, 'F32', 1, 4],
  [1, 'F16', 1, 2],
  [2, 'Q4_0', 32, 18],
  [3, 'Q4_1', 32, 20],
  [6, 'Q5_0', 32, 22],
  [7, 'Q5_1', 32, 24],
  [8, 'Q8_0', 32, 34],
  [9, 'Q8_1', 32, 36],
  [10, 'Q2_K', 256, 84],
  [11, 'Q3_K', 256, 110],
  [12, 'Q4_K', 256, 144],
  [13, 'Q5_K', 256, 176],
  [14, 'Q6_K', 256, 210],
  [15, 'Q8_K', 256, 292],
  [16, 'IQ2_XXS', 256, 66],
  [17, 'IQ2_XS', 256, 74],
  [18, 'IQ3_XXS', 256, 98],
  [19, 'IQ1_S', 256, 50],
  [20, 'IQ4_NL', 32, 18],
  [21, 'IQ3_S', 256, 110],
  [22, 'IQ2_S', 256, 82],
  [23, 'IQ4_XS', 256, 136],
  [24, 'I8', 1, 1],
  [25, 'I16', 1, 2],
  [26, 'I32', 1, 4],
  [27, 'I64', 1, 8],
  [28, 'F64', 1, 8],
  [29, 'IQ1_M', 256, 56],
  [30, 'BF16', 1, 2],
  [34, 'TQ1_0', 256, 54],
  [35, 'TQ2_0', 256, 66],
  [39, 'MXFP4', 32, 17],
  [40, 'NVFP4', 64, 36],
  [41, 'Q1_0', 128, 18],
  [42, 'Q2_0', 64, 18],
];

const byCode: ReadonlyMap<number, GgmlType> = new Map(
  rows.map(([code, name, blockElements, blockBytes]) => [code, { code, name, blockElements, blockBytes }]),
);

/** Every type, for checks against the library. */
export const ggmlTypes: readonly GgmlType[] = [...byCode.values()];

/** The type with this number, `null` when llama.cpp v0.5.0 has none. */
export const ggmlType = (code: number): GgmlType | null => byCode.get(code) ?? null;

/** The type with this name; an unknown name is a bug. */
export const ggmlTypeNamed = (name: string): GgmlType =>
  present(
    ggmlTypes.find((type) => type.name === name),
    `ggml type ${name} exists`,
  );

/** Bytes of a tensor of this type and shape. The first dimension must be a multiple of the block's elements. */
export const tensorBytes = (type: GgmlType, shape: readonly number[]): number =>
  (shape.reduce((product, size) => product * size, 1) / type.blockElements) * type.blockBytes;

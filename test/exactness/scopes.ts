/** How much of each model the tests look at, and how much the long form does. */
import type { ProofScope } from './proof.ts';
import { chunkings } from './subjects.ts';

const seed = 20;

/** All slices by themselves, all rings of two stages, some of three and four. */
export const shortScope: ProofScope = {
  slices: 'all',
  rings: { 2: 'all', 3: 3, 4: 3 },
  chunkings,
  stepsAfterChunks: 4,
  keepsSlices: true,
  seed,
};

/** A decode of the large model takes twenty times as long: some rings, through the script that has every chunking. */
export const shortBenchScope: ProofScope = {
  slices: 'none',
  rings: { 2: 4, 3: 2, 4: 2 },
  chunkings: [],
  stepsAfterChunks: 0,
  keepsSlices: false,
  seed,
};

/** Every ring of two, three and four stages. */
export const longScope: ProofScope = { ...shortScope, rings: { 2: 'all', 3: 'all', 4: 'all' }, stepsAfterChunks: 64 };

/** The same of the large model: rings with one prompt at once, its slices with every chunking. */
export const longBenchScope: ProofScope = {
  ...shortBenchScope,
  slices: 'all',
  rings: { 2: 'all', 3: 'all', 4: 'all' },
  chunkings: [63],
};

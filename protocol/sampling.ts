/** How the tail chooses the next token; the names and meanings are llama.cpp's. */
import type { TokenId } from './ids.ts';

export interface Sampling {
  /** 0 is greedy: the likeliest token, no draw. */
  readonly temperature: number;
  /** 0 is off. */
  readonly topK: number;
  /** 1 is off. */
  readonly topP: number;
  /** 0 is off. */
  readonly minP: number;
  /** 1 is off. */
  readonly repeatPenalty: number;
  /** How many of the latest tokens the penalties look at; 0 is off. */
  readonly repeatLastTokens: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly logitBias: readonly (readonly [TokenId, number])[];
  /** GBNF text whose start symbol is `root`, `null` for none. */
  readonly grammar: string | null;
  /** Unsigned 32-bit; the draw for step k is seeded by (seed, k) (X3). */
  readonly seed: number;
}

export const defaultSampling: Sampling = {
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  repeatPenalty: 1,
  repeatLastTokens: 64,
  frequencyPenalty: 0,
  presencePenalty: 0,
  logitBias: [],
  grammar: null,
  seed: 0,
};

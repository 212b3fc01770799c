/**
 * The architectures whose slices are proven to compute what the whole model does, and each one's rules for a cut.
 *
 * Common to all of them, and therefore in no rule: tensors `blk.<layer>.*` are renumbered, per-layer arrays are cut,
 * tensors of the whole model (`rope_freqs.weight`, `rope_factors_*.weight`) go into every slice. What the table adds is
 * what llama.cpp v0.5.0 derives from a layer's position, from the number of layers, or from being the first
 * (`src/models/<architecture>.cpp`, `src/llama-model.cpp`, `src/llama-graph.cpp`).
 *
 * Not here, on purpose: mistral3's attention temperature and phi3's long rope factors depend on positions and on the
 * context alone, granite's residual, attention and logit scales on nothing: every slice keeps them as they are.
 */
import { P4Error } from '../protocol/errors.ts';

export interface ArchitectureRule {
  /**
   * How sliding-window layers are told from the others where the metadata has no list of them: every `period`-th
   * layer is a full one. llama.cpp reads a list as well, so a slice always gets one and need not keep the phase.
   * Without a window size, a model whose window is optional has full layers only.
   */
  readonly slidingWindow:
    { readonly kind: 'none' } | { readonly kind: 'periodic'; readonly period: number; readonly isOptional: boolean };
  /** Factors llama.cpp applies to the input of the first layer, whatever that is: 1 in every slice after the first. */
  readonly inputFactors: readonly string[];
  /** Whether llama.cpp takes the embedding matrix as output matrix where there is none. */
  readonly outputMayBeTied: boolean;
  /**
   * What llama.cpp asserts about a head: keys and values are of one length (`square`); the rotary dimensions are of
   * that length too (`rotated`).
   */
  readonly headShape: 'rotated' | 'square';
  /**
   * What the hidden state is divided by before it goes into a slice after the first, to undo a factor in the graph
   * itself; `null`, as for all of these: gemma3 scales token input only.
   */
  readonly inputDivisor: null | ((hiddenWidth: number) => number);
  /** Whether the factor on attention scores depends on the number of layers: gemma3 knows its 27B model by its 62. */
  readonly scalesAttentionAt62Layers: boolean;
}

const plain: ArchitectureRule = {
  slidingWindow: { kind: 'none' },
  inputFactors: [],
  outputMayBeTied: true,
  headShape: 'rotated',
  inputDivisor: null,
  scalesAttentionAt62Layers: false,
};

/** By `general.architecture`. */
export const architectureRules: ReadonlyMap<string, ArchitectureRule> = new Map([
  ['llama', plain],
  ['qwen2', plain],
  ['qwen3', plain],
  ['qwen3moe', plain],
  ['mistral3', plain],
  ['phi3', { ...plain, headShape: 'square' }],
  ['granite', { ...plain, inputFactors: ['embedding_scale'] }],
  [
    'gemma3',
    {
      ...plain,
      slidingWindow: { kind: 'periodic', period: 6, isOptional: true },
      headShape: 'square',
      scalesAttentionAt62Layers: true,
    },
  ],
  [
    'gpt-oss',
    {
      ...plain,
      slidingWindow: { kind: 'periodic', period: 2, isOptional: false },
      outputMayBeTied: false,
    },
  ],
]);

/** @throws MODEL_ARCHITECTURE_UNPROVEN for an architecture that is not in the table */
export function architectureRule(architecture: string): ArchitectureRule {
  const rule = architectureRules.get(architecture);
  if (rule === undefined) {
    throw new P4Error('MODEL_ARCHITECTURE_UNPROVEN', { architecture, proven: [...architectureRules.keys()] });
  }
  return rule;
}

/** A key in the namespace of the model's architecture. */
export const architectureKey = (model: { readonly architecture: string }, key: string): string =>
  `${model.architecture}.${key}`;

/**
 * Chooses a request's tokens with llama.cpp's own samplers.
 *
 * - The draw of step k depends on the request's seed and k alone; penalties and grammar depend on the tokens accepted. A sampler
 *   made anew and given the same tokens goes on as the first would have (X3).
 * - Penalties know the prompt and what was emitted; the grammar only what was emitted.
 * - llama.cpp ends the process when a grammar is given a token that it does not allow, so every token is asked about before.
 * - As in llama.cpp, a grammar is first asked about the token drawn without it, and only if it refuses that one about all others.
 */
import { assert } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import type { Sampling } from '../protocol/sampling.ts';
import { tokenId, type TokenId } from '../protocol/ids.ts';
import type { Candidates } from './candidates.ts';
import { drawSeed } from './draw-seed.ts';
import { checkGrammar } from '../protocol/grammar-check.ts';
import type { LlamaLibrary } from './llama-library.ts';
import type { Pointer } from './llama-structs.ts';
import { samplerOptions } from './sampler-options.ts';
import type { Vocabulary } from './vocabulary.ts';

export type SampleOutcome =
  | { readonly kind: 'token'; readonly token: TokenId }
  /** No token of the vocabulary continues what the grammar allows; nothing was accepted. */
  | { readonly kind: 'grammar-dead-end' };

export interface Sampler {
  /** Tokens emitted so far: drawn here, or accepted as emitted. */
  readonly emitted: number;
  /** Tells the penalties about prompt tokens, in order. */
  acceptPrompt(tokens: ArrayLike<number>): void;
  /** Takes tokens that an earlier sampler of the request drew, in order. @throws SAMPLER_GRAMMAR, TOKEN_OUT_OF_RANGE */
  acceptEmitted(tokens: ArrayLike<number>): void;
  /**
   * Draws the token of a step and accepts it.
   *
   * @param logits one for each token; not changed
   * @param step index of the token in its completion
   * @throws STAGE_DECODE when the logits are not numbers, SAMPLER_GRAMMAR when the grammar takes too long
   */
  sample(logits: Float32Array, step: number): SampleOutcome;
  close(): void;
}

/** Time one step may spend on its grammar: an ambiguous one can double its work with each character. */
const mostGrammarMs = 3000;

/**
 * @param candidates may be shared by all samplers of a thread
 * @throws SAMPLING_INVALID, TOKEN_OUT_OF_RANGE, SAMPLER_GRAMMAR, TOKENIZER_ABSENT (for a grammar)
 */
export function openSampler(vocabulary: Vocabulary, candidates: Candidates, sampling: Sampling): Sampler {
  assert(candidates.size === vocabulary.size, 'there is a candidate for each token');
  const options = samplerOptions(sampling, vocabulary.size);
  const grammar = options.grammar === null ? null : openGrammar(vocabulary, options.grammar);
  return new ChainSampler({ vocabulary, candidates, sampling: options, grammar });
}

interface SamplerParts {
  readonly vocabulary: Vocabulary;
  readonly candidates: Candidates;
  readonly sampling: Sampling;
  readonly grammar: Pointer | null;
}

class ChainSampler implements Sampler {
  readonly #library: LlamaLibrary;
  readonly #vocabularySize: number;
  readonly #candidates: Candidates;
  readonly #seed: number;
  readonly #isGreedy: boolean;
  readonly #hasPenalties: boolean;
  readonly #chain: Pointer;
  readonly #grammar: Pointer | null;
  #emitted = 0;
  #isOpen = true;

  constructor({ vocabulary, candidates, sampling, grammar }: SamplerParts) {
    this.#library = vocabulary.native.library;
    this.#vocabularySize = vocabulary.size;
    this.#candidates = candidates;
    this.#seed = sampling.seed;
    this.#isGreedy = sampling.temperature === 0;
    this.#hasPenalties = hasPenalties(sampling);
    this.#chain = openChain(this.#library, sampling, vocabulary.size);
    this.#grammar = grammar;
  }

  get emitted(): number {
    return this.#emitted;
  }

  acceptPrompt(tokens: ArrayLike<number>): void {
    for (let index = 0; index < tokens.length; index += 1) this.#penalise(this.#known(tokens[index]));
  }

  acceptEmitted(tokens: ArrayLike<number>): void {
    for (let index = 0; index < tokens.length; index += 1) {
      const token = this.#known(tokens[index]);
      if (!this.#isAllowed(token))
        throw new P4Error('SAMPLER_GRAMMAR', { problem: 'a token it does not allow', token });
      this.#accept(token);
    }
  }

  sample(logits: Float32Array, step: number): SampleOutcome {
    assert(this.#isOpen, 'the sampler is open');
    if (!this.#candidates.fill(logits)) throw new P4Error('STAGE_DECODE', { problem: 'logits that are not numbers' });
    const first = this.#draw(step, 0);
    if (this.#isAllowed(first)) return this.#emit(first);

    const startedMs = performance.now();
    this.#candidates.fill(logits);
    this.#library.call.samplerApply(this.#openGrammar(), this.#candidates.all);
    if (this.#candidates.dropRuledOut() === 0) return { kind: 'grammar-dead-end' };
    const outcome = this.#emit(this.#draw(step, 1));
    const tookMs = performance.now() - startedMs;
    if (tookMs > mostGrammarMs) throw new P4Error('SAMPLER_GRAMMAR', { problem: 'too slow: too ambiguous', tookMs });
    return outcome;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#library.call.samplerFree(this.#chain);
    if (this.#grammar !== null) this.#library.call.samplerFree(this.#grammar);
  }

  #draw(step: number, attempt: 0 | 1): number {
    const { call } = this.#library;
    call.samplerApply(this.#chain, this.#candidates.all);
    if (!this.#isGreedy) {
      const draw = call.drawNew(drawSeed(this.#seed, step, attempt));
      call.samplerApply(draw, this.#candidates.all);
      call.samplerFree(draw);
    }
    return this.#candidates.selected();
  }

  #emit(token: number): SampleOutcome {
    this.#accept(token);
    return { kind: 'token', token: tokenId(token) };
  }

  /** The token must be allowed. */
  #accept(token: number): void {
    this.#penalise(token);
    if (this.#grammar !== null) this.#library.call.samplerAccept(this.#grammar, token);
    this.#emitted += 1;
  }

  #penalise(token: number): void {
    assert(this.#isOpen, 'the sampler is open');
    if (this.#hasPenalties) this.#library.call.samplerAccept(this.#chain, token);
  }

  #isAllowed(token: number): boolean {
    if (this.#grammar === null) return true;
    this.#candidates.fillLone(token);
    this.#library.call.samplerApply(this.#grammar, this.#candidates.lone);
    return !this.#candidates.isLoneRuledOut();
  }

  #openGrammar(): Pointer {
    assert(this.#grammar !== null, 'only a grammar refuses a token');
    return this.#grammar;
  }

  #known(token: number | undefined): number {
    const isKnown = token !== undefined && Number.isInteger(token) && token >= 0 && token < this.#vocabularySize;
    if (!isKnown) throw new P4Error('TOKEN_OUT_OF_RANGE', { token: String(token), vocabulary: this.#vocabularySize });
    return token;
  }
}

const hasPenalties = ({ repeatLastTokens, repeatPenalty, frequencyPenalty, presencePenalty }: Sampling): boolean =>
  repeatLastTokens > 0 && (repeatPenalty !== 1 || frequencyPenalty !== 0 || presencePenalty !== 0);

/** All but the draw, in llama.cpp's usual order; a greedy chain ends in the choice itself. */
function openChain({ call }: LlamaLibrary, sampling: Sampling, vocabularySize: number): Pointer {
  const chain = call.samplerChainNew(call.samplerChainDefaultParams());
  const add = (sampler: Pointer): void => {
    call.samplerChainAdd(chain, sampler);
  };
  if (sampling.logitBias.length > 0) {
    add(call.logitBiasNew(vocabularySize, sampling.logitBias.length, biasTable(sampling.logitBias)));
  }
  if (hasPenalties(sampling)) {
    const { repeatLastTokens, repeatPenalty, frequencyPenalty, presencePenalty } = sampling;
    add(call.penaltiesNew(vocabularySize, repeatLastTokens, repeatPenalty, frequencyPenalty, presencePenalty));
  }
  if (sampling.temperature === 0) {
    add(call.greedyNew());
    return chain;
  }
  if (sampling.topK > 0) add(call.topKNew(sampling.topK));
  if (sampling.topP < 1) add(call.topPNew(sampling.topP, 1));
  if (sampling.minP > 0) add(call.minPNew(sampling.minP, 1));
  add(call.temperatureNew(sampling.temperature));
  return chain;
}

/** `struct llama_logit_bias[]`: token int32, bias float32. */
function biasTable(biases: Sampling['logitBias']): Uint8Array {
  const table = new DataView(new ArrayBuffer(biases.length * 8));
  biases.forEach(([token, bias], index) => {
    table.setInt32(index * 8, token, true);
    table.setFloat32(index * 8 + 4, bias, true);
  });
  return new Uint8Array(table.buffer);
}

function openGrammar(vocabulary: Vocabulary, text: string): Pointer {
  if (!vocabulary.hasTokenizer) throw new P4Error('TOKENIZER_ABSENT', {});
  checkGrammar(text);
  const { library, vocabulary: native } = vocabulary.native;
  const grammar = library.log.record(() => library.call.grammarNew(native, text, 'root'));
  if (grammar === null) throw new P4Error('SAMPLER_GRAMMAR', { said: library.log.lines });
  return grammar;
}

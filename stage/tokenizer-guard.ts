/**
 * Keeps text from a tokenizer that it would end, and the process with it.
 *
 * Many byte-pair tokenizers of llama.cpp split text with `std::regex`, which recurses once or more for each character of a
 * match. Measured with 16 MiB of stack: 32,000 letters in a row pass and 64,000 end the process (deepseek-llm); 16,000 pass
 * with the deeper patterns (gpt-4o, tekken). Tokenizers whose splitter is written by hand have no such bound.
 */
import { P4Error } from '../protocol/errors.ts';

/** `tokenizer.ggml.pre` of tokenizers whose whole splitting is written by hand. */
const plainSplitters: ReadonlySet<string> = new Set(['gpt-2', 'llama3', 'llama-v3', 'llama-bpe', 'qwen2']);

/** Characters of one kind that follow each other: half of what is measured to pass. */
const mostOfOneKind = 8192;

const kinds = /\s+|\p{L}+|\p{N}+|[^\s\p{L}\p{N}]+/gu;

/** A tokenizer as its GGUF names it: `tokenizer.ggml.model` and `tokenizer.ggml.pre`. */
export interface TokenizerName {
  readonly model: string;
  readonly splitter: string;
}

/** @throws INVALID_ARGUMENT naming the place of a run of characters that is too long for this tokenizer */
export function guardTokenizer(text: string, { model, splitter }: TokenizerName): void {
  if (model !== 'gpt2' || plainSplitters.has(splitter) || text.length <= mostOfOneKind) return;
  for (const { 0: run, index } of text.matchAll(kinds)) {
    if (run.length <= mostOfOneKind) continue;
    throw new P4Error('INVALID_ARGUMENT', {
      what: 'text',
      found: `${run.length} characters of one kind in a row, from character ${index} on`,
      expected: `at most ${mostOfOneKind} with a tokenizer of kind ${splitter}`,
    });
  }
}

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { benchModelShape, writeRandomModel } from '../model/random-model.ts';
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { withEngine } from './engine-fixture.ts';
import { guardTokenizer } from './tokenizer-guard.ts';
import { pieceFlags, type Vocabulary } from './vocabulary.ts';

const plain = { addSpecial: false, parseSpecial: false };

const withVocabulary = (use: (vocabulary: Vocabulary) => void): void => {
  withEngine({ batchRows: 1, contextTokens: 16 }, (engine) => {
    use(engine.vocabulary);
  });
};

function textOf(vocabulary: Vocabulary, tokens: ArrayLike<number>): string {
  const { bytes, offsets } = vocabulary.pieces();
  return Buffer.concat(Array.from(tokens, (token) => bytes.subarray(offsets[token], offsets[token + 1]))).toString();
}

test('any text survives the way to token ids and back through the pieces', () => {
  withVocabulary((vocabulary) => {
    for (const text of ['', 'Once upon a time', 'Grüße, 世界! 🙂\n\0\t x', ' '.repeat(999), 'a'.repeat(100_000)]) {
      assert.equal(textOf(vocabulary, vocabulary.tokenize(text, plain)), text);
    }
    assert.equal(textOf(vocabulary, vocabulary.tokenize('half \ud83d of a pair', plain)), 'half \ufffd of a pair');
  });
});

test('special tokens come only where they are asked for', () => {
  withVocabulary((vocabulary) => {
    const named = '<|end|>';
    assert.deepEqual([...vocabulary.tokenize(named, { addSpecial: false, parseSpecial: true })], [4]);
    assert.ok(!vocabulary.tokenize(named, plain).includes(4));
    assert.equal(
      vocabulary.tokenize('x', { addSpecial: true, parseSpecial: false })[0],
      vocabulary.beginningOfSequence,
    );
    assert.notEqual(vocabulary.tokenize('x', plain)[0], vocabulary.beginningOfSequence);
  });
});

test('control and end-of-generation tokens are marked', () => {
  withVocabulary((vocabulary) => {
    const { flags, offsets } = vocabulary.pieces();
    assert.equal(flags.length, vocabulary.size);
    assert.equal(offsets.length, vocabulary.size + 1);
    assert.equal(vocabulary.endOfSequence, 1);
    for (const token of [0, 2, 3, 5]) assert.equal(flags[token], pieceFlags.control, `token ${token}`);
    for (const token of [1, 4]) assert.equal(flags[token], pieceFlags.control | pieceFlags.endOfGeneration);
    assert.ok(flags.subarray(6).every((flag) => flag === 0));
    assert.ok(vocabulary.isEndOfGeneration(4) && !vocabulary.isEndOfGeneration(300));
  });
});

test('a text beyond the bound is refused, not tokenized', () => {
  withVocabulary((vocabulary) => {
    assert.throws(() => vocabulary.tokenize('x'.repeat(limits.promptBytes + 1), plain), isCode('INVALID_ARGUMENT'));
  });
});

test('a model without a tokenizer says so', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'p4-vocabulary-'));
  try {
    const path = join(folder, 'plain.gguf');
    const shape = { layers: 1, hiddenWidth: 64, heads: 2, kvHeads: 2, feedForwardWidth: 64, vocabularySize: 64 };
    await writeRandomModel(path, { ...benchModelShape, ...shape });
    withEngine({ path, layers: { first: 0, last: 0 }, modelLayers: 1 }, ({ vocabulary }) => {
      assert.equal(vocabulary.size, 64);
      assert.equal(vocabulary.hasTokenizer, false);
      assert.equal(vocabulary.endOfSequence, null);
      assert.equal(vocabulary.isEndOfGeneration(1), false);
      assert.throws(() => vocabulary.tokenize('x', plain), isCode('TOKENIZER_ABSENT'));
      assert.throws(() => vocabulary.pieces(), isCode('TOKENIZER_ABSENT'));
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('runs that a recursive tokenizer does not survive are refused, ordinary text and other tokenizers are not', () => {
  const recursive = { model: 'gpt2', splitter: 'deepseek-llm' };
  const prose = 'All work and no play makes Jack a dull boy, 1234567890 times. '.repeat(2000);
  guardTokenizer(prose, recursive);
  for (const character of ['a', ' ', '7', '!', '中', '\n']) {
    const text = `${prose}${character.repeat(9000)} end`;
    assert.throws(() => {
      guardTokenizer(text, recursive);
    }, isCode('INVALID_ARGUMENT'));
    guardTokenizer(text, { model: 'gpt2', splitter: 'qwen2' });
    guardTokenizer(text, { model: 'llama', splitter: '' });
  }
});

function isCode(code: P4Error['code']): (error: unknown) => boolean {
  return (error) => error instanceof P4Error && error.code === code;
}

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { architectureRules } from './architecture.ts';
import { elementsOf, f32, flags, text, u32, valueAt } from './gguf-value.ts';
import { copyModel, testModel, type ModelChanges } from './model-copy.ts';
import { openModel } from './model-file.ts';

const storiesModel = join(import.meta.dirname, '..', '..', 'plans', 'stories.gguf');

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-model-file-'));
});
after(async () => {
  await rm(folder, { recursive: true });
});

const isCode =
  (code: ErrorCode, found: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof P4Error, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, found);
    return true;
  };

describe('opening a model', () => {
  it('says what the stories model is', async () => {
    const model = await openModel(storiesModel);
    assert.equal(model.architecture, 'llama');
    assert.equal(model.layers, 8);
    assert.equal(model.hiddenWidth, 192);
    assert.equal(model.contextTokens, 1024);
    assert.equal(model.vocabularySize, 1024);
    assert.equal(model.hasTokenizer, true);
    assert.equal(model.bytes, 7_320_096);
    const tokens = elementsOf(valueAt(model.metadata, 'tokenizer.ggml.tokens'));
    assert.deepEqual(tokens.slice(0, 3), ['<|bos|>', '<|endoftext|>', '<|user|>']);
  });

  it('knows every proven architecture, and that token ids without text are no tokenizer', async () => {
    const names = ['llama-dense', 'llama-moe', 'qwen2-dense', 'qwen3-dense', 'qwen3moe-moe', 'mistral3-dense'];
    const opened = new Set<string>();
    for (const name of [...names, 'phi3-dense', 'granite-dense', 'gemma3-dense', 'gpt-oss-moe']) {
      const model = await openModel(testModel(name));
      opened.add(model.architecture);
      assert.equal(model.layers, 12);
      assert.equal(model.vocabularySize, 128);
      assert.equal(model.hasTokenizer, false);
    }
    assert.deepEqual([...opened].sort(), [...architectureRules.keys()].sort());
  });

  it('refuses an architecture by name, and a path that cannot be read', async () => {
    await assert.rejects(
      openModel(testModel('gemma2-dense')),
      isCode('MODEL_ARCHITECTURE_UNPROVEN', /gemma2[^]*gemma3/),
    );
    await assert.rejects(openModel(join(folder, 'nothing.gguf')), isCode('MODEL_FILE_UNREADABLE', /ENOENT/));
    await assert.rejects(openModel(folder), isCode('MODEL_FILE_UNREADABLE', /regular file|EISDIR/));
  });
});

describe('a model that libllama would end the process on, or could not run', () => {
  const faults: readonly (readonly [name: string, model: string, changes: ModelChanges, found: RegExp])[] = [
    ['no architecture', 'llama-dense', { metadata: { 'general.architecture': null } }, /general.architecture/],
    ['no layer count', 'llama-dense', { metadata: { 'llama.block_count': null } }, /llama.block_count/],
    ['a layer count that is text', 'llama-dense', { metadata: { 'llama.block_count': text('12') } }, /block_count/],
    ['no layers', 'llama-dense', { metadata: { 'llama.block_count': u32(0) } }, /block_count/],
    ['too many layers', 'llama-dense', { metadata: { 'llama.block_count': u32(513) } }, /513 layers/],
    ['a layer without tensors', 'llama-dense', { metadata: { 'llama.block_count': u32(13) } }, /no tensor of layer 12/],
    ['tensors without a layer', 'llama-dense', { metadata: { 'llama.block_count': u32(11) } }, /tensor blk\.11\./],
    ['an adapter', 'llama-dense', { metadata: { 'general.type': text('adapter') } }, /type adapter/],
    ['more experts in use than there are', 'llama-moe', { metadata: { 'llama.expert_used_count': u32(3) } }, /3 of 2/],
    ['experts and none in use', 'llama-moe', { metadata: { 'llama.expert_used_count': u32(0) } }, /0 of 2/],
    [
      'heads that do not share evenly',
      'llama-dense',
      { metadata: { 'llama.attention.head_count': u32(3) } },
      /3 heads over 2/,
    ],
    ['no heads', 'llama-dense', { metadata: { 'llama.attention.head_count': null } }, /0 heads/],
    ['a rotation of half a head', 'llama-dense', { metadata: { 'llama.rope.dimension_count': u32(32) } }, /32 rotary/],
    ['an odd rotation', 'gemma3-dense', { metadata: { 'gemma3.rope.dimension_count': u32(33) } }, /33 rotary/],
    [
      'keys and values of two lengths',
      'phi3-dense',
      { metadata: { 'phi3.attention.key_length': u32(32) } },
      /keys of 32/,
    ],
    ['an unknown rope scaling', 'llama-dense', { metadata: { 'llama.rope.scaling.type': text('cubic') } }, /cubic/],
    ['no embedding', 'llama-dense', { withoutTensors: ['token_embd.weight'] }, /no token_embd/],
    ['no final norm', 'llama-dense', { withoutTensors: ['output_norm.weight'] }, /no output_norm/],
    ['another width', 'llama-dense', { metadata: { 'llama.embedding_length': u32(64) } }, /128 x 128/],
    ['no tokenizer model', 'llama-dense', { metadata: { 'tokenizer.ggml.model': null } }, /tokenizer.ggml.model/],
    [
      'tokens that are no text',
      'llama-dense',
      { metadata: { 'tokenizer.ggml.tokens': flags(Array(128).fill(true)) } },
      /tokens: 128 of bool/,
    ],
    [
      'too few token types',
      'llama-dense',
      { metadata: { 'tokenizer.ggml.token_type': flags([true]) } },
      /token_type: 1 of bool/,
    ],
    ['one score for all', 'llama-dense', { metadata: { 'tokenizer.ggml.scores': f32(0) } }, /scores: one f32/],
    [
      'a vocabulary of another size',
      'llama-dense',
      { metadata: { 'tokenizer.ggml.model': text('no_vocab'), 'llama.vocab_size': u32(127) } },
      /128 x 127/,
    ],
    [
      'windowed heads of their own',
      'gemma3-dense',
      { metadata: { 'gemma3.attention.key_length_swa': u32(32) } },
      /key_length_swa 32/,
    ],
    [
      'windowed rotation of its own',
      'gpt-oss-moe',
      { metadata: { 'gpt-oss.rope.dimension_count_swa': u32(0) } },
      /dimension_count_swa 0/,
    ],
    [
      'a negative epsilon',
      'llama-dense',
      { metadata: { 'llama.attention.layer_norm_rms_epsilon': f32(-1) } },
      /epsilon -1/,
    ],
    ['no epsilon', 'llama-dense', { metadata: { 'llama.attention.layer_norm_rms_epsilon': null } }, /epsilon NaN/],
    [
      'nothing but predicting layers',
      'llama-dense',
      { metadata: { 'llama.nextn_predict_layers': u32(12) } },
      /12 predicting/,
    ],
    [
      'no layer with a window',
      'gemma3-dense',
      { metadata: { 'gemma3.attention.sliding_window_pattern': flags(Array(12).fill(false)) } },
      /no layer with the sliding/,
    ],
    [
      'a short list of windows',
      'gemma3-dense',
      { metadata: { 'gemma3.attention.sliding_window_pattern': flags([true]) } },
      /1 layers in/,
    ],
    [
      'no window where there must be one',
      'gpt-oss-moe',
      { metadata: { 'gpt-oss.attention.sliding_window': u32(0) } },
      /no sliding window/,
    ],
  ];
  for (const [name, file, changes, found] of faults) {
    it(`is refused: ${name}`, async () => {
      const path = join(folder, 'changed.gguf');
      await copyModel(await openModel(testModel(file)), path, changes);
      await assert.rejects(openModel(path), isCode('MODEL_INVALID', found));
    });
  }
});

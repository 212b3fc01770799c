/**
 * Gives a model without a tokenizer names for its tokens, so that node-llama-cpp can load it: the package tokenizes a text
 * when it loads a model, and libllama ends the process where there is no tokenizer at all. The weights stay as they are.
 */
import { open } from 'node:fs/promises';
import { createReadStream } from 'node:fs';

import { layOut } from '../../model/gguf-writer.ts';
import { encodedText, text, type GgufValue } from '../../model/gguf-value.ts';
import { openModel } from '../../model/model-file.ts';
import { assert } from '../../protocol/assert.ts';

/** @param target the new file's path; `source` is one file */
export async function writeWithTokenNames(source: string, target: string): Promise<void> {
  const model = await openModel(source);
  assert(!model.hasTokenizer && model.shards.length === 1, 'the model is one file and has no tokenizer');
  const names = Array.from({ length: model.vocabularySize }, (_, token) => encodedText(`token_${String(token)}`));
  const tokens: GgufValue = { kind: 'array', type: 'string', length: names.length, bytes: Buffer.concat(names) };
  const metadata = new Map([
    ...model.metadata,
    // A kind of libllama's own, which makes token ids of any text.
    ['tokenizer.ggml.model', text('test')] as const,
    ['tokenizer.ggml.tokens', tokens] as const,
  ]);
  const { header } = layOut(metadata, model.tensors, model.alignment);
  const weights = Math.min(...model.tensors.map(({ offset }) => offset));
  const handle = await open(target, 'wx');
  try {
    await handle.write(header);
    for await (const chunk of createReadStream(source, { start: weights })) await handle.write(chunk as Buffer);
  } finally {
    await handle.close();
  }
}

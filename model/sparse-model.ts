/** A model whose weights take no room on the disk, for tests of size. */
import { open } from 'node:fs/promises';
import { ggmlTypeNamed } from './ggml-type.ts';
import { f32, text, u32, type GgufMetadata } from './gguf-value.ts';
import { layOut, type TensorShape } from './gguf-writer.ts';

/** A llama model whose weights are a hole in the file: as large as wanted, in bytes for each layer. */
export async function writeSparseModel(path: string, size: { layers: number; layerBytes: number }): Promise<void> {
  const width = 4096;
  const type = ggmlTypeNamed('Q8_0');
  const rows = Math.floor(size.layerBytes / ((width / type.blockElements) * type.blockBytes));
  const tensors: TensorShape[] = [
    { name: 'token_embd.weight', type, shape: [width, 32] },
    { name: 'output_norm.weight', type: ggmlTypeNamed('F32'), shape: [width] },
    ...Array.from({ length: size.layers }, (_, layer) => ({
      name: `blk.${layer}.ffn_up.weight`,
      type,
      shape: [width, rows],
    })),
  ];
  const metadata: GgufMetadata = new Map([
    ['general.architecture', text('llama')],
    ['llama.block_count', u32(size.layers)],
    ['llama.embedding_length', u32(width)],
    ['llama.context_length', u32(128)],
    ['llama.attention.head_count', u32(32)],
    ['llama.attention.layer_norm_rms_epsilon', f32(1e-5)],
    ['llama.vocab_size', u32(32)],
    ['tokenizer.ggml.model', text('no_vocab')],
  ]);
  const layout = layOut(metadata, tensors, 32);
  const handle = await open(path, 'w');
  await handle.write(layout.header);
  await handle.truncate(layout.bytes);
  await handle.close();
}

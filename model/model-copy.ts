/**
 * A model written anew: with other metadata, without some tensors, or in shards. For tests that need a file which
 * nobody ships. Only for small models: their content is read into memory.
 */
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GgufMetadata, GgufValue } from './gguf-value.ts';
import { text, u32 } from './gguf-value.ts';
import { GgufWriter, layOut } from './gguf-writer.ts';
import type { ModelFile, ModelTensor } from './model-file.ts';

export interface ModelChanges {
  /** New and changed keys; `null` removes one. */
  readonly metadata?: Readonly<Record<string, GgufValue | null>>;
  readonly withoutTensors?: readonly string[];
}

/** Writes `model` with these changes to `path`. */
export async function copyModel(model: ModelFile, path: string, changes: ModelChanges = {}): Promise<void> {
  const metadata = new Map(model.metadata);
  for (const [key, value] of Object.entries(changes.metadata ?? {})) {
    if (value === null) metadata.delete(key);
    else metadata.set(key, value);
  }
  const tensors = model.tensors.filter(({ name }) => !(changes.withoutTensors ?? []).includes(name));
  await writeFile(model, { path, metadata, tensors });
}

/**
 * Writes `model` as shards `<name>-00001-of-<count>.gguf` and so on, the first with metadata only.
 *
 * @returns their paths
 */
export async function splitModel(model: ModelFile, stem: string, count: number): Promise<readonly string[]> {
  const digits = (number: number): string => String(number).padStart(5, '0');
  const perShard = Math.ceil(model.tensors.length / (count - 1));
  const paths: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const path = `${stem}-${digits(index + 1)}-of-${digits(count)}.gguf`;
    const tensors = index === 0 ? [] : model.tensors.slice((index - 1) * perShard, index * perShard);
    const metadata = new Map(index === 0 ? model.metadata : [['general.architecture', text(model.architecture)]]);
    metadata.set('split.no', u32(index));
    metadata.set('split.count', u32(count));
    metadata.set('split.tensors.count', u32(model.tensors.length));
    await writeFile(model, { path, metadata, tensors });
    paths.push(path);
  }
  return paths;
}

interface FileContent {
  readonly path: string;
  readonly metadata: GgufMetadata;
  readonly tensors: readonly ModelTensor[];
}

async function writeFile(model: ModelFile, { path, metadata, tensors }: FileContent): Promise<void> {
  const handle = await open(path, 'w');
  try {
    const writer = new GgufWriter(handle, layOut(metadata, tensors, model.alignment));
    await writer.writeHeader();
    const contents = await Promise.all(model.shards.map((shard) => readFile(shard.path)));
    for (const { shard, offset, bytes } of tensors) {
      await writer.write(contents[shard]?.subarray(offset, offset + bytes) ?? Buffer.alloc(0));
      await writer.endTensor();
    }
    writer.finish();
  } finally {
    await handle.close();
  }
}

/** All bytes of one tensor. */
export async function tensorContent(model: ModelFile, tensor: ModelTensor): Promise<Buffer> {
  const handle = await open(model.shards[tensor.shard]?.path ?? '', 'r');
  try {
    const bytes = Buffer.alloc(tensor.bytes);
    await handle.read(bytes, 0, tensor.bytes, tensor.offset);
    return bytes;
  } finally {
    await handle.close();
  }
}

/** Path of a model that comes with the project's tests. */
export const testModel = (name: string): string =>
  join(import.meta.dirname, '..', '..', 'test', 'models', `${name}.gguf`);

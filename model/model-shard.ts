/**
 * The files of one model: a single GGUF, or all shards of a split one (`name-00001-of-00003.gguf`).
 *
 * Any shard's path stands for the model. Every shard is opened, read and compared with the first: what they say about
 * the split must agree, and no tensor may occur twice.
 */
import { open, stat, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { readHeader, type GgufHeader } from './gguf-header.ts';
import { unsignedOf } from './gguf-value.ts';

export interface ModelShard {
  readonly path: string;
  readonly bytes: number;
  /** With size and inode, the state of the file that was read: another one means another content. */
  readonly modifiedNs: bigint;
  readonly inode: bigint;
}

export interface ReadShard {
  readonly shard: ModelShard;
  readonly header: GgufHeader;
}

const splitName = /^(?<stem>.*)-(?<number>\d{5})-of-(?<count>\d{5})\.gguf$/s;

/**
 * Reads the headers of all files of the model that `path` belongs to, in order.
 *
 * @throws MODEL_FILE_UNREADABLE, GGUF_SHARD_MISSING, GGUF_SHARD_INVALID, or what `readHeader` throws
 */
export async function readShards(path: string): Promise<readonly ReadShard[]> {
  const match = splitName.exec(basename(path));
  const count = Number(match?.groups?.['count'] ?? 1);
  if (match === null || count === 1) {
    const shards = [await readShard(path)];
    checkSplit(shards);
    return shards;
  }
  if (count === 0 || count > limits.ggufShards) {
    throw new P4Error('GGUF_SHARD_INVALID', {
      file: path,
      found: `${count} shards`,
      expected: `1 to ${limits.ggufShards}`,
    });
  }
  const paths = shardPaths(join(dirname(path), match.groups?.['stem'] ?? ''), count);
  await requireAll(paths);
  const shards: ReadShard[] = [];
  for (const shardPath of paths) shards.push(await readShard(shardPath));
  checkSplit(shards);
  return shards;
}

/** Opens a model file for reading. The caller closes it. */
export async function openShard(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Confirms that an open shard is still the file whose header was read.
 *
 * @throws MODEL_CHANGED
 */
export async function requireUnchanged(handle: FileHandle, shard: ModelShard): Promise<void> {
  const found = await describe(handle, shard.path);
  if (found.bytes !== shard.bytes || found.modifiedNs !== shard.modifiedNs || found.inode !== shard.inode) {
    throw new P4Error('MODEL_CHANGED', { file: shard.path });
  }
}

export function unreadable(path: string, error: unknown): P4Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new P4Error('MODEL_FILE_UNREADABLE', { file: path, reason }, error);
}

async function readShard(path: string): Promise<ReadShard> {
  const handle = await openShard(path);
  try {
    const shard = await describe(handle, path);
    return { shard, header: await readHeader(handle, path, shard.bytes) };
  } catch (error) {
    throw error instanceof P4Error ? error : unreadable(path, error);
  } finally {
    await handle.close();
  }
}

async function describe(handle: FileHandle, path: string): Promise<ModelShard> {
  const found = await handle.stat({ bigint: true });
  if (!found.isFile()) throw new P4Error('MODEL_FILE_UNREADABLE', { file: path, reason: 'it is not a regular file' });
  return { path, bytes: Number(found.size), modifiedNs: found.mtimeNs, inode: found.ino };
}

const shardPaths = (stem: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${stem}-${digits(index + 1)}-of-${digits(count)}.gguf`);

const digits = (number: number): string => String(number).padStart(5, '0');

async function requireAll(paths: readonly string[]): Promise<void> {
  const missing: string[] = [];
  for (const path of paths) {
    const isThere = await stat(path).then(
      () => true,
      () => false,
    );
    if (!isThere) missing.push(path);
  }
  if (missing.length > 0) throw new P4Error('GGUF_SHARD_MISSING', { missing, shards: paths.length });
}

function checkSplit(shards: readonly ReadShard[]): void {
  const names = new Set<string>();
  for (const [index, { shard, header }] of shards.entries()) {
    const count = unsignedOf(header.metadata.get('split.count')) ?? 1;
    expectEqual(shard.path, { what: 'split.count', found: count, expected: shards.length });
    if (shards.length === 1) continue;
    const number = unsignedOf(header.metadata.get('split.no')) ?? -1;
    expectEqual(shard.path, { what: 'split.no', found: number, expected: index });
    for (const { name } of header.tensors) {
      if (names.has(name)) {
        throw new P4Error('GGUF_SHARD_INVALID', {
          file: shard.path,
          found: `tensor ${name}, which an earlier shard has`,
        });
      }
      names.add(name);
    }
  }
  const [first] = shards;
  if (first === undefined || shards.length === 1) return;
  const total = unsignedOf(first.header.metadata.get('split.tensors.count')) ?? -1;
  expectEqual(first.shard.path, { what: 'split.tensors.count', found: total, expected: names.size });
}

function expectEqual(file: string, { what, found, expected }: { what: string; found: number; expected: number }): void {
  if (found !== expected) {
    throw new P4Error('GGUF_SHARD_INVALID', { file, found: `${what} ${found}`, expected: `${what} ${expected}` });
  }
}

/**
 * Cutting: writes the file of a planned slice next to nothing else, or leaves it as it was.
 *
 * The file is written under a temporary name, synced, read back and compared with what was written, then renamed, and
 * the folder is synced: under its own name a slice is always whole. Several processes may cut the same slice into the
 * same folder at once; each writes a temporary file of its own and the last rename wins, with the same content.
 */
import { randomBytes } from 'node:crypto';
import { open, rename, rm, statfs, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import type { SliceId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { fileHash } from './file-hash.ts';
import { GgufWriter } from './gguf-writer.ts';
import type { ModelFile, ModelTensor } from './model-file.ts';
import { openShard, requireUnchanged } from './model-shard.ts';
import { syncFolder } from './folder-sync.ts';
import { makeFolder } from './made-folder.ts';
import { cuttingSuffix, isDiskFull, removeAbandoned } from './slice-folder.ts';
import { sliceFileName, type SlicePlan, type SliceTensor } from './slice-plan.ts';

export interface CutRequest {
  readonly model: ModelFile;
  /** Of this model, by `planSlice`. */
  readonly plan: SlicePlan;
  /** Where the slice goes; made when missing. */
  readonly folder: string;
  /** Called now and then with the bytes written so far, of `plan.bytes`. */
  readonly onProgress?: (writtenBytes: number) => void;
  readonly signal?: AbortSignal;
}

export interface CutSlice {
  readonly id: SliceId;
  readonly path: string;
  readonly bytes: number;
  /** A sound file of this id was there already, and was kept. */
  readonly reused: boolean;
}

/**
 * Cuts a slice. Needs a few times `limits.copyBufferBytes` of memory beside the header, whatever the model's size.
 *
 * @throws MODEL_FILE_UNREADABLE or MODEL_CHANGED about the model, SLICE_NO_SPACE, SLICE_UNWRITABLE or SLICE_INVALID
 *   about the slice; the signal's reason when it was cancelled. The temporary file is gone in every case.
 */
export async function cutSlice(request: CutRequest): Promise<CutSlice> {
  const { plan, folder } = request;
  const path = join(folder, sliceFileName(plan.id));
  const result = { id: plan.id, path, bytes: plan.bytes };
  if (await isSliceThere(path, plan)) return { ...result, reused: true };
  await prepareFolder(folder, plan);
  const temporary = join(folder, `.${plan.id}.${process.pid}.${randomBytes(6).toString('hex')}${cuttingSuffix}`);
  try {
    await writeSlice(request, temporary);
    await rename(temporary, path);
    await syncFolder(folder);
  } catch (error) {
    await rm(temporary, { force: true });
    throw writeFailure(error, { folder, plan });
  }
  return { ...result, reused: false };
}

/** A file under a slice's name was whole when it got it; its size and header show that it still is what is planned. */
async function isSliceThere(path: string, plan: SlicePlan): Promise<boolean> {
  let handle: FileHandle;
  try {
    handle = await open(path, 'r');
  } catch {
    return false;
  }
  try {
    if ((await handle.stat()).size !== plan.bytes) return false;
    const header = Buffer.alloc(plan.layout.header.length);
    const { bytesRead } = await handle.read(header, 0, header.length, 0);
    return bytesRead === header.length && header.equals(plan.layout.header);
  } finally {
    await handle.close();
  }
}

async function prepareFolder(folder: string, plan: SlicePlan): Promise<void> {
  try {
    await makeFolder(folder);
    await removeAbandoned(folder, Date.now());
    const { bavail, bsize } = await statfs(folder);
    const freeBytes = bavail * bsize;
    if (freeBytes < plan.bytes) throw new P4Error('SLICE_NO_SPACE', { folder, neededBytes: plan.bytes, freeBytes });
  } catch (error) {
    throw writeFailure(error, { folder, plan });
  }
}

async function writeSlice(request: CutRequest, path: string): Promise<void> {
  const { plan, signal } = request;
  const handle = await open(path, 'wx');
  let written: string;
  try {
    const writer = new GgufWriter(handle, plan.layout);
    await writer.writeHeader();
    await copyTensors(request, writer);
    written = writer.finish();
    await handle.sync();
  } finally {
    await handle.close();
  }
  const found = await fileHash(path, { signal });
  if (found !== written) throw new P4Error('SLICE_INVALID', { file: path, found, expected: written });
}

async function copyTensors({ model, plan, onProgress, signal }: CutRequest, writer: GgufWriter): Promise<void> {
  const buffer = Buffer.allocUnsafe(limits.copyBufferBytes);
  const shards = new Map<number, FileHandle>();
  try {
    for (const tensor of plan.tensors) {
      for await (const chunk of tensorChunks({ model, tensor, buffer, shards })) {
        signal?.throwIfAborted();
        await writer.write(chunk);
        onProgress?.(writer.offset);
      }
      await writer.endTensor();
    }
    onProgress?.(writer.offset);
    for (const [index, handle] of shards) await requireUnchanged(handle, shardAt(model, index));
  } finally {
    for (const handle of shards.values()) await handle.close();
  }
}

interface TensorRead {
  readonly model: ModelFile;
  readonly tensor: SliceTensor;
  /** Overwritten with each chunk: a chunk is good until the next one is asked for. */
  readonly buffer: Buffer;
  /** Open shards by index; those that are missing are added. */
  readonly shards: Map<number, FileHandle>;
}

async function* tensorChunks({ model, tensor, buffer, shards }: TensorRead): AsyncGenerator<Buffer> {
  const { source } = tensor;
  if (source.kind === 'zeros') buffer.fill(0);
  for (let done = 0; done < tensor.bytes;) {
    const chunk = buffer.subarray(0, Math.min(buffer.length, tensor.bytes - done));
    if (source.kind === 'model') {
      const handle = shards.get(source.tensor.shard) ?? (await openShard(shardAt(model, source.tensor.shard).path));
      shards.set(source.tensor.shard, handle);
      await readFully(handle, chunk, { model, tensor: source.tensor, offset: source.tensor.offset + done });
    }
    yield chunk;
    done += chunk.length;
  }
}

async function readFully(
  handle: FileHandle,
  chunk: Buffer,
  from: { model: ModelFile; tensor: ModelTensor; offset: number },
): Promise<void> {
  for (let filled = 0; filled < chunk.length;) {
    const { bytesRead } = await handle.read(chunk, filled, chunk.length - filled, from.offset + filled);
    if (bytesRead === 0) throw new P4Error('MODEL_CHANGED', { file: shardAt(from.model, from.tensor.shard).path });
    filled += bytesRead;
  }
}

function shardAt(model: ModelFile, index: number): ModelFile['shards'][number] {
  return present(model.shards[index], 'a tensor lies in a shard of its model');
}

function writeFailure(error: unknown, { folder, plan }: { folder: string; plan: SlicePlan }): unknown {
  if (!(error instanceof Error) || !('code' in error) || error instanceof P4Error) return error;
  const reason = error.message;
  return isDiskFull(error)
    ? new P4Error('SLICE_NO_SPACE', { folder, neededBytes: plan.bytes, reason }, error)
    : new P4Error('SLICE_UNWRITABLE', { folder, reason }, error);
}

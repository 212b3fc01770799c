/** A folder of slices: what is in it, what room there is, and taking a slice out. Slices alone have 64 digits as a name. */
import { readdir, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { P4Error } from '../protocol/errors.ts';
import { sliceId, type SliceId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { systemCode } from '../protocol/tls-identity.ts';
import { makeFolder } from './made-folder.ts';
import { sliceFileName } from './slice-plan.ts';

export interface SliceFile {
  readonly id: SliceId;
  readonly bytes: number;
  /** When it was last read or written, as far as the file system keeps that (often to the day), in Unix milliseconds. */
  readonly lastUsedMs: number;
}

export interface SliceFolderContent {
  /** By id. */
  readonly slices: readonly SliceFile[];
  /** Of slices that are being cut or received, or were when something ended that. */
  readonly unfinished: readonly UnfinishedFile[];
}

export interface UnfinishedFile {
  readonly path: string;
  readonly bytes: number;
  readonly changedMs: number;
}

export const slicePathIn = (folder: string, id: SliceId): string => join(folder, sliceFileName(id));

/** Ends of the names of unfinished slices; the names begin with a dot. */
export const cuttingSuffix = '.cutting';
export const receivingSuffix = '.receiving';

const slicePattern = /^([0-9a-f]{64})\.gguf$/;

/** A folder that is not there is empty. @throws SLICE_UNWRITABLE where it cannot be read */
export async function readSliceFolder(folder: string): Promise<SliceFolderContent> {
  const slices: SliceFile[] = [];
  const unfinished: UnfinishedFile[] = [];
  for (const name of (await namesIn(folder)).sort()) {
    const path = join(folder, name);
    const [, id] = slicePattern.exec(name) ?? [];
    const isUnfinished = name.startsWith('.') && (name.endsWith(cuttingSuffix) || name.endsWith(receivingSuffix));
    if (id === undefined && !isUnfinished) continue;
    // It may be gone since the folder was read.
    const found = await stat(path).catch(() => null);
    if (found?.isFile() !== true) continue;
    if (id === undefined) unfinished.push({ path, bytes: found.size, changedMs: found.mtimeMs });
    else slices.push({ id: sliceId(id), bytes: found.size, lastUsedMs: Math.max(found.atimeMs, found.mtimeMs) });
  }
  return { slices, unfinished };
}

/** Size of a slice's file, `null` where it is not there. */
export async function sliceBytesIn(folder: string, id: SliceId): Promise<number | null> {
  const found = await stat(slicePathIn(folder, id)).catch(() => null);
  return found?.isFile() === true ? found.size : null;
}

/** Whether there was one. @throws SLICE_UNWRITABLE */
export async function removeSlice(folder: string, id: SliceId): Promise<boolean> {
  const isThere = (await sliceBytesIn(folder, id)) !== null;
  try {
    await rm(slicePathIn(folder, id), { force: true });
  } catch (error) {
    throw unwritable(folder, error);
  }
  return isThere;
}

/**
 * Removes unfinished files that nobody has written to for long: whoever cuts a slice touches its file all the time, and an
 * upload that was cut short is gone on with soon or never.
 */
export async function removeAbandoned(folder: string, nowMs: number): Promise<void> {
  const { unfinished } = await readSliceFolder(folder);
  for (const { path, changedMs } of unfinished) {
    const keptMs = path.endsWith(receivingSuffix) ? limits.abandonedUploadMs : limits.abandonedCutMs;
    if (nowMs - changedMs > keptMs) await rm(path, { force: true });
  }
}

/** Bytes that may still be written to the folder's file system, whether the folder is there yet or not. */
export async function freeBytesFor(folder: string): Promise<number> {
  for (let path = folder; ; path = dirname(path)) {
    const found = await statfs(path).catch(() => null);
    if (found !== null) return found.bavail * found.bsize;
    if (path === dirname(path)) return 0;
  }
}

/** @throws SLICE_UNWRITABLE */
export async function makeSliceFolder(folder: string): Promise<void> {
  try {
    await makeFolder(folder);
  } catch (error) {
    throw unwritable(folder, error);
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw unwritable(folder, error);
  }
}

const noSpaceCodes: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Whether a write failed because the disk, or the user's share of it, is full. */
export const isDiskFull = (error: unknown): boolean => noSpaceCodes.has(systemCode(error));

export const unwritable = (folder: string, cause: unknown): P4Error =>
  new P4Error('SLICE_UNWRITABLE', { folder, reason: cause instanceof Error ? cause.message : 'unknown' }, cause);

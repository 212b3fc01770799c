/**
 * The hash that names a model's content: of one file its sha256, of a split model the sha256 over the sha256s of its
 * shards in order, each as hexadecimal text and a line feed.
 *
 * Hashing reads every byte. A cache file, where the caller names one, remembers the result for as long as path, size,
 * time of modification and inode stay the same; it is a convenience, and a broken one is started anew.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileHash } from './file-hash.ts';
import { makeFolder } from './made-folder.ts';
import type { ModelFile } from './model-file.ts';
import { openShard, requireUnchanged, type ModelShard } from './model-shard.ts';

export interface ModelHashOptions {
  /** A JSON file; made when missing, together with its folder. */
  readonly cachePath?: string;
  /** Called now and then with the bytes hashed so far, of `model.bytes`. */
  readonly onProgress?: (hashedBytes: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * 64 hexadecimal digits.
 *
 * @throws MODEL_FILE_UNREADABLE; MODEL_CHANGED when a file is no longer the one that was opened; the signal's reason
 *   when it was cancelled
 */
export async function hashModel(model: ModelFile, options: ModelHashOptions = {}): Promise<string> {
  const cache = options.cachePath === undefined ? new Map<string, string>() : await readCache(options.cachePath);
  const hashes: string[] = [];
  let isCacheStale = false;
  let before = 0;
  for (const shard of model.shards) {
    let hash = cache.get(cacheKey(shard));
    if (hash === undefined) {
      const offset = before;
      const onProgress = (hashed: number): void => options.onProgress?.(offset + hashed);
      hash = await fileHash(shard.path, { onProgress, signal: options.signal });
      cache.set(cacheKey(shard), hash);
      isCacheStale = true;
    }
    await confirmUnchanged(shard);
    hashes.push(hash);
    before += shard.bytes;
    options.onProgress?.(before);
  }
  if (isCacheStale && options.cachePath !== undefined) await writeCache(options.cachePath, cache);
  const [only] = hashes;
  if (hashes.length === 1 && only !== undefined) return only;
  return createHash('sha256')
    .update(hashes.map((hash) => `${hash}\n`).join(''))
    .digest('hex');
}

async function confirmUnchanged(shard: ModelShard): Promise<void> {
  const handle = await openShard(shard.path);
  try {
    await requireUnchanged(handle, shard);
  } finally {
    await handle.close();
  }
}

const cacheKey = ({ path, bytes, modifiedNs, inode }: ModelShard): string =>
  JSON.stringify([path, bytes, String(modifiedNs), String(inode)]);

async function readCache(path: string): Promise<Map<string, string>> {
  const cache = new Map<string, string>();
  try {
    const parsed: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof parsed !== 'object' || parsed === null) return cache;
    for (const [key, hash] of Object.entries(parsed)) {
      if (typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash)) cache.set(key, hash);
    }
  } catch {
    // Absent or broken: every file is hashed again, and the cache is written anew.
  }
  return cache;
}

/** Replaces the cache in one step; of two writers at once one is forgotten, which costs a hash. */
async function writeCache(path: string, cache: ReadonlyMap<string, string>): Promise<void> {
  const temporary = `${path}.${process.pid}.${randomBytes(6).toString('hex')}`;
  try {
    await makeFolder(dirname(path));
    await writeFile(temporary, `${JSON.stringify(Object.fromEntries(cache), null, 1)}\n`, { mode: 0o600 });
    await rename(temporary, path);
  } catch {
    // A model that can be hashed can be used: without a cache the next run hashes again.
    await rm(temporary, { force: true });
  }
}

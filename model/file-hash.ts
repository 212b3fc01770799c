/** The sha256 of a file, read in bounded pieces. */
import { createHash } from 'node:crypto';
import { limits } from '../protocol/limits.ts';
import { openShard, unreadable } from './model-shard.ts';

export interface HashOptions {
  /** Called now and then with the bytes hashed so far. */
  readonly onProgress?: ((hashedBytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * In hexadecimal.
 *
 * @throws MODEL_FILE_UNREADABLE; the signal's reason when it was cancelled
 */
export async function fileHash(path: string, { onProgress, signal }: HashOptions = {}): Promise<string> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(limits.copyBufferBytes);
  const handle = await openShard(path);
  try {
    for (let offset = 0; ;) {
      signal?.throwIfAborted();
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset).catch((error: unknown) => {
        throw unreadable(path, error);
      });
      if (bytesRead === 0) return hash.digest('hex');
      hash.update(buffer.subarray(0, bytesRead));
      offset += bytesRead;
      onProgress?.(offset);
    }
  } finally {
    await handle.close();
  }
}

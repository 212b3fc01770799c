/**
 * The sha256 of files, remembered in the state folder: a Node binary and CUDA libraries are half a gigabyte that does not
 * change between two deployments.
 *
 * A file is taken for the same while path, size, modification time and inode are. One that was changed within the last
 * seconds is not remembered: it could change again within the clock's resolution.
 */
import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { fileHash } from '../../model/file-hash.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { isRecord, memberOf } from '../../protocol/plain-value.ts';
import { systemCode } from '../../protocol/tls-identity.ts';
import { makeOwnerFolder, ownerFileMode, readIfThere, writeDurably } from '../durable-file.ts';
import type { StateFolder } from '../state-folder.ts';

export interface HashedFile {
  readonly sha256: string;
  readonly bytes: number;
}

interface KnownHash {
  /** Size, modification time in nanoseconds and inode. */
  readonly identity: string;
  readonly sha256: string;
}

const fileName = 'file-hashes.json';
const settledMs = 2000;

export class FileHashes {
  readonly #path: string | null;
  readonly #known: ReadonlyMap<string, KnownHash>;
  readonly #used = new Map<string, KnownHash>();
  #hashedBytes = 0;

  private constructor(path: string | null, known: ReadonlyMap<string, KnownHash>) {
    this.#path = path;
    this.#known = known;
  }

  /** What is remembered; nothing where the file is damaged: it is only a memory. @throws STATE_UNREADABLE */
  static async open({ root }: StateFolder): Promise<FileHashes> {
    const path = join(root, fileName);
    return new FileHashes(path, parseKnown(await readIfThere(path)));
  }

  /** Remembers nothing beyond its own life. */
  static forgetful(): FileHashes {
    return new FileHashes(null, new Map());
  }

  /** Bytes that had to be read so far. */
  get hashedBytes(): number {
    return this.#hashedBytes;
  }

  /** @throws RELEASE_SOURCE_CHANGED when the file cannot be read */
  async hash(path: string): Promise<HashedFile> {
    try {
      const { size, ...found } = identityOf(await stat(path, { bigint: true }));
      if (size < limits.rememberedHashBytes) return await this.#hashSmall(path);
      const known = this.#used.get(path) ?? this.#known.get(path);
      const isSame = known?.identity === found.identity;
      const sha256 = isSame ? known.sha256 : await this.#hashLarge(path, size);
      if (Date.now() - found.changedMs > settledMs) this.#used.set(path, { identity: found.identity, sha256 });
      return { sha256, bytes: size };
    } catch (cause) {
      throw new P4Error('RELEASE_SOURCE_CHANGED', { path, why: systemCode(cause) }, cause);
    }
  }

  /** Remembers what was asked for since it was opened, for the next command. @throws STATE_UNWRITABLE */
  async save(): Promise<void> {
    if (this.#path === null || this.#hashedBytes === 0) return;
    await makeOwnerFolder(join(this.#path, '..'));
    const files = Object.fromEntries([...this.#known, ...this.#used]);
    await writeDurably({ path: this.#path, text: `${JSON.stringify({ format: 1, files })}\n`, mode: ownerFileMode });
  }

  async #hashSmall(path: string): Promise<HashedFile> {
    const content = await readFile(path);
    return { sha256: createHash('sha256').update(content).digest('hex'), bytes: content.length };
  }

  async #hashLarge(path: string, size: number): Promise<string> {
    const sha256 = await fileHash(path);
    this.#hashedBytes += size;
    return sha256;
  }
}

interface FileIdentity {
  readonly identity: string;
  readonly size: number;
  readonly changedMs: number;
}

const identityOf = ({ size, mtimeNs, ino, mtimeMs }: BigIntStats): FileIdentity => ({
  identity: `${size}.${mtimeNs}.${ino}`,
  size: Number(size),
  changedMs: Number(mtimeMs),
});

function parseKnown(text: string | null): ReadonlyMap<string, KnownHash> {
  if (text === null) return new Map();
  const files = memberOf(parseJson(text), 'files');
  if (!isRecord(files)) return new Map();
  return new Map(
    Object.entries(files).flatMap(([path, entry]): [string, KnownHash][] => {
      const [identity, sha256] = [memberOf(entry, 'identity'), memberOf(entry, 'sha256')];
      const isSound = typeof identity === 'string' && typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256);
      return isSound ? [[path, { identity, sha256 }]] : [];
    }),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

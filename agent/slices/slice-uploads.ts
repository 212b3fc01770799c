/**
 * Takes the files of slices that an operator sends.
 *
 * - A slice is written under a temporary name, and gets its own once size, hash and identity are right and all is on the
 *   disk: under its own name a slice is always whole.
 * - An upload that is cut short leaves what came, and the next one goes on from there. One whose content is wrong, or that
 *   fills the disk, leaves nothing.
 * - Of two senders of one slice the second is refused while the first goes on.
 * - Memory: the connection's window and one chunk, however large the slice is.
 */
import { constants } from 'node:fs';
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import type { HostName, SliceId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { SliceChunk, SliceReceived, SliceState } from '../../protocol/slice-messages.ts';
import { syncFolder } from '../../model/folder-sync.ts';
import {
  freeBytesFor,
  isDiskFull,
  makeSliceFolder,
  receivingSuffix,
  sliceBytesIn,
  slicePathIn,
  unwritable,
} from '../../model/slice-folder.ts';
import type { SliceWork } from './slice-work.ts';
import { parseUpload, type Upload } from './upload-order.ts';

export interface SliceUploadsOptions {
  readonly folder: string;
  /** Part of temporary names: agents of one machine may share a folder. */
  readonly host: HostName;
  readonly work: SliceWork;
}

export class SliceUploads {
  readonly #options: SliceUploadsOptions;
  readonly #receiving = new Set<SliceId>();

  constructor(options: SliceUploadsOptions) {
    this.#options = options;
  }

  isReceiving(id: SliceId): boolean {
    return this.#receiving.has(id);
  }

  async state(id: SliceId): Promise<SliceState> {
    const whole = await sliceBytesIn(this.#options.folder, id);
    const part = whole ?? (await sizeOf(this.#temporary(id)));
    return { sliceId: id, isPresent: whole !== null, bytes: String(part), isReceiving: this.isReceiving(id) };
  }

  /**
   * Takes one slice from a stream of chunks.
   * @throws INVALID_ARGUMENT, SLICE_BUSY, SLICE_NO_SPACE, SLICE_UNWRITABLE, SLICE_DAMAGED; the signal's reason
   */
  async receive(chunks: AsyncIterable<SliceChunk>, signal: AbortSignal): Promise<SliceReceived> {
    const messages = chunks[Symbol.asyncIterator]();
    const first = await messages.next();
    const upload = parseUpload(first.done === true ? {} : first.value);
    const received = { sliceId: upload.id, bytes: String(upload.bytes) };
    if ((await sliceBytesIn(this.#options.folder, upload.id)) === upload.bytes) return received;
    if (this.#receiving.has(upload.id)) throw new P4Error('SLICE_BUSY', { slice: upload.id, host: this.#options.host });
    this.#receiving.add(upload.id);
    try {
      await this.#write(upload, messages);
      await this.#finish(upload, signal);
    } finally {
      this.#receiving.delete(upload.id);
    }
    return received;
  }

  async #write(upload: Upload, messages: AsyncIterator<SliceChunk>): Promise<void> {
    const { folder } = this.#options;
    await makeSliceFolder(folder);
    const temporary = this.#temporary(upload.id);
    const there = await sizeOf(temporary);
    if (upload.offset > there) throw invalid('offset', String(upload.offset), `at most ${there}, what is there`);
    const neededBytes = upload.bytes - upload.offset;
    const freeBytes = (await freeBytesFor(folder)) + there - upload.offset;
    if (freeBytes < neededBytes) throw new P4Error('SLICE_NO_SPACE', { folder, neededBytes, freeBytes });
    const handle = await openPart(temporary, folder);
    try {
      await handle.truncate(upload.offset);
      await writeChunks(handle, upload, messages);
      await handle.sync();
    } catch (error) {
      // A full disk would take the journal's room as well: what is there of the slice makes way.
      if (isDiskFull(error)) {
        await rm(temporary, { force: true });
        throw new P4Error('SLICE_NO_SPACE', { folder, neededBytes: upload.bytes }, error);
      }
      throw error instanceof P4Error ? error : unwritable(folder, error);
    } finally {
      await handle.close();
    }
  }

  /** The whole of it is on the disk; it gets its name if it is what it was said to be. */
  async #finish({ id, sha256 }: Upload, signal: AbortSignal): Promise<void> {
    const { folder, work } = this.#options;
    const path = this.#temporary(id);
    try {
      await work.run({ kind: 'verify', path, sliceId: id, sha256 }, { signal });
      await rename(path, slicePathIn(folder, id));
      await syncFolder(folder);
    } catch (error) {
      if (!(error instanceof P4Error)) throw unwritable(folder, error);
      // Whoever interrupts may send again; everything else says that the content is wrong.
      if (!signal.aborted) await rm(path, { force: true });
      throw error;
    }
  }

  #temporary(id: SliceId): string {
    return join(this.#options.folder, `.${id}.${this.#options.host}${receivingSuffix}`);
  }
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => null))?.size ?? 0;

/** Its name is made of digits and a host's name, and it must not lead elsewhere. */
async function openPart(path: string, folder: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW);
  } catch (error) {
    throw unwritable(folder, error);
  }
}

async function writeChunks(handle: FileHandle, upload: Upload, messages: AsyncIterator<SliceChunk>): Promise<void> {
  let offset = upload.offset;
  for (let next = await messages.next(); next.done !== true; next = await messages.next()) {
    if (next.value.part !== 'data') throw invalid('chunk', 'no data', 'data after the first message');
    const { data } = next.value;
    if (data.length > limits.sliceChunkBytes)
      throw invalid('chunk', `${data.length} bytes`, `at most ${limits.sliceChunkBytes}`);
    if (offset + data.length > upload.bytes) throw invalid('upload', 'more bytes', String(upload.bytes));
    for (let done = 0; done < data.length;) {
      const { bytesWritten } = await handle.write(data, done, data.length - done, offset + done);
      done += bytesWritten;
    }
    offset += data.length;
  }
  if (offset !== upload.bytes) throw invalid('upload', `${offset} bytes`, String(upload.bytes));
}

const invalid = (what: string, found: string, expected: string): P4Error =>
  new P4Error('INVALID_ARGUMENT', { what, found, expected });

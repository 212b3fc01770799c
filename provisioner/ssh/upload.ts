/**
 * Sends a file to a host.
 *
 * It grows beside its place under a name made from its hash. What an upload that broke off left there is gone on with. A
 * file takes its place only when size and SHA-256 on the host are those that were announced, its owner and mode are set,
 * and it is safe from a power loss.
 */
import { createReadStream } from 'node:fs';
import { posix } from 'node:path';

import { assert } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { systemCode } from '../../protocol/tls-identity.ts';
import type { RemoteResult, Session } from './session.ts';
import { shellQuoted } from './shell-quoting.ts';
import { finishScript, sendScript, standScript, wholeScript, type UploadPlace, uploadStatus } from './upload-script.ts';

export type UploadSource =
  { readonly kind: 'file'; readonly path: string } | { readonly kind: 'bytes'; readonly bytes: Uint8Array };

export interface UploadOrder {
  readonly source: UploadSource;
  /** Absolute path on the host; its folder has to be there. */
  readonly destination: string;
  /** Permission bits, as in 0o644. */
  readonly mode: number;
  /** As `chown` takes it: `root:p4`. */
  readonly owner: string;
  /** Of the whole file: 64 hexadecimal digits. */
  readonly sha256: string;
  /** Of the whole file. */
  readonly bytes: number;
  readonly onProgress?: (progress: UploadProgress) => void;
  readonly signal?: AbortSignal;
}

export type UploadProgress =
  /** Bytes of the file that have been handed to the connection, those of a former upload included. */
  { readonly kind: 'sending'; readonly bytes: number; readonly resumedBytes: number } | { readonly kind: 'checking' };

/** How much of it went over the network. */
export interface UploadResult {
  readonly sentBytes: number;
}

interface Stand {
  /** Of the unfinished file on the host. */
  readonly bytes: number;
  readonly freeBytes: number;
}

/**
 * @throws UPLOAD_DAMAGED, HOST_DISK_FULL, HOST_SCRIPT_FAILED, STATE_UNREADABLE where the source cannot be read, and as
 *   `Session.run` does. After all but UPLOAD_DAMAGED what was sent stays for the next try.
 */
export async function upload(session: Session, order: UploadOrder): Promise<UploadResult> {
  assert(/^[0-9a-f]{64}$/.test(order.sha256) && order.bytes >= 0, 'hash and size are of a file');
  assert(order.destination.startsWith('/') && posix.basename(order.destination) !== '', 'the destination is a path');
  if (order.bytes <= limits.uploadWholeBytes) return sendWhole(session, order);
  const stand = await standOf(session, order);
  const first = await sendFrom(session, order, stand);
  if (first.kind === 'placed') return { sentBytes: first.sentBytes };
  // What a broken connection, or a power loss, left of a former upload may be the cause: once more from the start.
  const again = stand.bytes === 0 ? first : await sendFrom(session, order, { ...stand, bytes: 0 });
  if (again.kind === 'placed') return { sentBytes: first.sentBytes + again.sentBytes };
  throw damaged(session, order, again.found);
}

type Sending =
  | { readonly kind: 'placed'; readonly sentBytes: number }
  /** The temporary file is gone. */
  | { readonly kind: 'damaged'; readonly sentBytes: number; readonly found: string };

async function sendFrom(session: Session, order: UploadOrder, stand: Stand): Promise<Sending> {
  const offset = stand.bytes;
  const left = order.bytes - offset;
  if (stand.freeBytes < left) throw full(session, order, { left, free: stand.freeBytes });
  const place = placeOf(order);
  if (left > 0) {
    const input = counted(chunksOf(order, offset), order, offset);
    const sent = await session.run({ script: sendScript(place, offset), input, ...signalOf(order) });
    if (sent.status !== 0) throw await sendingFailure(session, order, sent);
  }
  order.onProgress?.({ kind: 'checking' });
  const finished = await session.run({ script: finishScript(place), ...signalOf(order) });
  if (finished.status === uploadStatus.damaged) {
    return { kind: 'damaged', sentBytes: left, found: finished.stdout.toString('latin1').trim() };
  }
  if (finished.status !== 0) throw await sendingFailure(session, order, finished);
  return { kind: 'placed', sentBytes: left };
}

/** A small file: one command, and nothing to go on with. */
async function sendWhole(session: Session, order: UploadOrder): Promise<UploadResult> {
  const input = counted(chunksOf(order, 0), order, 0);
  const sent = await session.run({ script: wholeScript(placeOf(order)), input, ...signalOf(order) });
  if (sent.status === uploadStatus.damaged) throw damaged(session, order, sent.stdout.toString('latin1').trim());
  if (sent.status !== 0) throw await sendingFailure(session, order, sent);
  return { sentBytes: order.bytes };
}

async function standOf(session: Session, order: UploadOrder): Promise<Stand> {
  const { status, stdout, stderr } = await session.run({ script: standScript(placeOf(order)), ...signalOf(order) });
  const [, bytes, freeBytes] = /^(\d+) (\d+)\n$/.exec(stdout.toString('latin1')) ?? [];
  if (status !== 0 || bytes === undefined || freeBytes === undefined) throw failed(session, order, { status, stderr });
  // More than there is to be: it is not of this file, whatever its name says.
  return { bytes: Number(bytes) > order.bytes ? 0 : Number(bytes), freeBytes: Number(freeBytes) };
}

/** Why the host did not take all: most often its disk is full, which nothing but its free space tells for certain. */
async function sendingFailure(session: Session, order: UploadOrder, result: Failed): Promise<P4Error> {
  const stand = await standOf(session, order);
  const left = Math.max(0, order.bytes - stand.bytes);
  return stand.freeBytes < Math.max(left, 1)
    ? full(session, order, { left, free: stand.freeBytes })
    : failed(session, order, result);
}

type Failed = Pick<RemoteResult, 'status' | 'stderr'>;

const placeOf = ({ destination, sha256, bytes, mode, owner }: UploadOrder): UploadPlace => {
  const name = posix.basename(destination);
  return { destination, folder: posix.dirname(destination), name, sha256, bytes, mode, owner };
};

const signalOf = ({ signal }: UploadOrder): { readonly signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };

async function* chunksOf({ source }: UploadOrder, offset: number): AsyncGenerator<Uint8Array> {
  switch (source.kind) {
    case 'bytes':
      for (let at = offset; at < source.bytes.length; at += limits.sshChunkBytes)
        yield source.bytes.subarray(at, at + limits.sshChunkBytes);
      return;
    case 'file':
      try {
        yield* createReadStream(source.path, {
          start: offset,
          highWaterMark: limits.sshChunkBytes,
        }) as AsyncIterable<Buffer>;
      } catch (error) {
        throw new P4Error('STATE_UNREADABLE', { path: source.path, why: systemCode(error) }, error);
      }
  }
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  { onProgress }: UploadOrder,
  offset: number,
): AsyncGenerator<Uint8Array> {
  let bytes = offset;
  for await (const chunk of chunks) {
    yield chunk;
    bytes += chunk.length;
    onProgress?.({ kind: 'sending', bytes, resumedBytes: offset });
  }
}

const damaged = (session: Session, { destination, sha256 }: UploadOrder, found: string): P4Error =>
  new P4Error('UPLOAD_DAMAGED', { host: session.host, path: destination, sent: sha256, found });

const full = (
  session: Session,
  { destination }: UploadOrder,
  { left, free }: { readonly left: number; readonly free: number },
): P4Error =>
  new P4Error('HOST_DISK_FULL', { host: session.host, path: destination, bytesWanted: left, bytesFree: free });

const failed = (session: Session, { destination }: UploadOrder, { status, stderr }: Failed): P4Error =>
  new P4Error('HOST_SCRIPT_FAILED', {
    host: session.host,
    what: `upload of ${shellQuoted(destination)}`,
    status,
    said: stderr.trim(),
  });

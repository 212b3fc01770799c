/** The bytes of a shipment's stream, read from the operator's files while they go. */
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';

import { assert } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { systemCode } from '../../protocol/tls-identity.ts';
import { packPieces, type StreamPiece } from './pack.ts';
import type { ReleaseFile } from './release.ts';
import type { ShipmentStream } from './shipment.ts';

/** `from` inclusive, `to` exclusive, of the stream's bytes. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/** @throws RELEASE_SOURCE_CHANGED where a file is shorter than it was, or gone */
export async function* bytesOf(
  { kind, files }: Pick<ShipmentStream, 'kind' | 'files'>,
  { from, to }: ByteRange,
): AsyncGenerator<Buffer> {
  const pieces = kind === 'pack' ? packPieces(files) : files.map(wholeFile);
  let start = 0;
  for (const piece of pieces) {
    const range = { from: Math.max(0, from - start), to: Math.min(piece.length, to - start) };
    if (range.from < range.to) yield* pieceBytes(piece, range);
    start += piece.length;
    if (start >= to) return;
  }
}

const wholeFile = (file: ReleaseFile): StreamPiece => ({ kind: 'file', file, length: file.bytes });

async function* pieceBytes(piece: StreamPiece, { from, to }: ByteRange): AsyncGenerator<Buffer> {
  if (piece.kind === 'file') yield* fileBytes(piece.file, { from, to });
  else yield piece.bytes.subarray(from, to);
}

/** As `gzip` writes it, at its fastest. */
export async function* compressed(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gzip = createGzip({ level: 1, chunkSize: limits.sendChunkBytes });
  // A failure of the source destroys it, and the loop below throws that.
  pipeline(bytes, gzip, () => undefined);
  const chunks: AsyncIterable<unknown> = gzip;
  for await (const chunk of chunks) {
    assert(Buffer.isBuffer(chunk), 'gzip gives bytes');
    yield chunk;
  }
}

async function* fileBytes({ source, path }: ReleaseFile, { from, to }: ByteRange): AsyncGenerator<Buffer> {
  if (source.kind === 'text') {
    yield Buffer.from(source.text).subarray(from, to);
    return;
  }
  const file = await open(source.path).catch((cause: unknown) => {
    throw new P4Error('RELEASE_SOURCE_CHANGED', { path: source.path, why: systemCode(cause) }, cause);
  });
  try {
    for (let offset = from; offset < to;) {
      // A new buffer each time: the one before is still on its way.
      const buffer = Buffer.allocUnsafeSlow(Math.min(limits.sendChunkBytes, to - offset));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, offset);
      if (bytesRead === 0) throw new P4Error('RELEASE_SOURCE_CHANGED', { path, why: 'it is shorter than it was' });
      yield buffer.subarray(0, bytesRead);
      offset += bytesRead;
    }
  } finally {
    await file.close();
  }
}

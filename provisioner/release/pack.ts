/** Small files of a release as one stream: a `tar` archive, each file under its object's name. */
import { present } from '../../protocol/assert.ts';
import type { ReleaseFile } from './release.ts';
import { paddingOf, tarBlockBytes, tarEnd, tarHeader } from './tar-entry.ts';

/** A run of a stream's bytes: of a file, or made here. */
export type StreamPiece =
  | { readonly kind: 'file'; readonly file: ReleaseFile; readonly length: number }
  | { readonly kind: 'made'; readonly bytes: Buffer; readonly length: number };

export const packBytes = (files: readonly ReleaseFile[]): number =>
  files.reduce((sum, { bytes }) => sum + tarBlockBytes + bytes + paddingOf(bytes), tarEnd.length);

export function packPieces(files: readonly ReleaseFile[]): readonly StreamPiece[] {
  const pieces = files.flatMap((file): readonly StreamPiece[] => {
    const header = present(tarHeader({ kind: 'file', path: file.sha256, bytes: file.bytes }), 'a hash is a short name');
    const padding = Buffer.alloc(paddingOf(file.bytes));
    return [made(header), { kind: 'file', file, length: file.bytes }, made(padding)];
  });
  return [...pieces, made(tarEnd)];
}

const made = (bytes: Buffer): StreamPiece => ({ kind: 'made', bytes, length: bytes.length });

/** Where each file's content begins in its pack. */
export function packOffsets(files: readonly ReleaseFile[]): readonly (readonly [ReleaseFile, number])[] {
  let end = 0;
  return files.map((file): readonly [ReleaseFile, number] => {
    const start = end + tarBlockBytes;
    end = start + file.bytes + paddingOf(file.bytes);
    return [file, start];
  });
}

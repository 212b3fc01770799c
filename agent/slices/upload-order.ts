/** The first message of an upload, parsed: nothing of it becomes a path or a size unchecked. */
import { P4Error } from '../../protocol/errors.ts';
import { sliceId, type SliceId } from '../../protocol/ids.ts';
import type { SliceChunk } from '../../protocol/slice-messages.ts';

export interface Upload {
  readonly id: SliceId;
  /** Of the whole file. */
  readonly bytes: number;
  readonly sha256: string;
  /** First byte that is sent, at most `bytes`. */
  readonly offset: number;
}

/** @throws INVALID_ARGUMENT */
export function parseUpload(chunk: SliceChunk): Upload {
  if (chunk.part !== 'begin') throw invalid('upload', 'no beginning', 'a message that says which slice it is');
  const { begin } = chunk;
  const id = sliceId(begin.sliceId);
  if (!/^[0-9a-f]{64}$/.test(begin.sha256)) throw invalid('sha256', begin.sha256, '64 hexadecimal digits');
  const bytes = fileSize('size', begin.bytes);
  const offset = fileSize('offset', begin.offset);
  if (bytes === 0 || offset > bytes) throw invalid('offset', begin.offset, `at most the size, ${begin.bytes}`);
  return { id, bytes, sha256: begin.sha256, offset };
}

/** Sizes of files are whole numbers that a double holds exactly: 8 PiB and less. */
function fileSize(what: string, text: string): number {
  const value = Number(text);
  if (!/^[0-9]{1,16}$/.test(text) || !Number.isSafeInteger(value)) throw invalid(what, text, 'a number of bytes');
  return value;
}

const invalid = (what: string, found: string, expected: string): P4Error =>
  new P4Error('INVALID_ARGUMENT', { what, found: found.slice(0, 100), expected });

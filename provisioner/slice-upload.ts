/**
 * Sends one slice's file to one host: from where an earlier try has left off, and again where a connection was cut.
 *
 * A try that makes way costs nothing; after some that make none, the last one's error is told.
 */
import { open } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import type { SliceId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { SliceChunk, SliceState } from '../protocol/slice-messages.ts';
import type { AgentClient } from './agent-client.ts';
import { interruption } from './interrupt.ts';

export interface SliceUpload {
  readonly client: AgentClient;
  readonly id: SliceId;
  readonly bytes: number;
  /** Of the whole file here. */
  readonly path: string;
  readonly sha256: string;
  readonly signal: AbortSignal;
  /** How many of its bytes the host has; may go back where a try began anew. */
  readonly onProgress: (bytes: number) => void;
  /** Called with what has gone over the network since the last call. */
  readonly onSent: (bytes: number) => void;
}

/** What another try may mend: a connection, an agent that starts again, somebody else's upload, a damaged file. */
const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'AGENT_UNREACHABLE',
  'HOST_LOST',
  'HOST_UNREACHABLE',
  'AGENT_STOPPING',
  'RPC_FAILED',
  'RPC_TIMED_OUT',
  'CANCELLED',
  'SLICE_BUSY',
]);

/** @returns the bytes that were sent, those of tries that failed included */
export async function uploadSlice(upload: SliceUpload): Promise<number> {
  const { signal, bytes } = upload;
  let sent = 0;
  let damaged = 0;
  let furthest = -1;
  for (let idle = 0; ;) {
    const outcome = await tryUpload({
      ...upload,
      onSent: (count) => {
        sent += count;
        upload.onSent(count);
      },
    });
    if (outcome.kind === 'there') {
      upload.onProgress(bytes);
      return sent;
    }
    signal.throwIfAborted();
    const { error, offset } = outcome;
    if (error.code === 'SLICE_DAMAGED') {
      // Once may be a fault on the way; the host has thrown it away.
      damaged += 1;
      if (damaged > 1) throw error;
      continue;
    }
    if (!passing.has(error.code)) throw error;
    idle = offset > furthest ? 0 : idle + 1;
    furthest = Math.max(furthest, offset);
    if (idle >= limits.sliceUploadTries) throw error;
    await pause(limits.sliceRetryMs, undefined, { signal }).catch(() => {
      throw interruption(signal);
    });
  }
}

type TryOutcome =
  | { readonly kind: 'there' }
  /** `offset`: what the host had when the try began. */
  | { readonly kind: 'failed'; readonly error: P4Error; readonly offset: number };

async function tryUpload(upload: SliceUpload): Promise<TryOutcome> {
  const { client, id, signal } = upload;
  let offset = -1;
  try {
    const state = await sliceState(client, id, signal);
    if (state.isPresent) return { kind: 'there' };
    const part = Number(state.bytes);
    offset = part;
    if (state.isReceiving) throw new P4Error('SLICE_BUSY', { slice: id, host: client.peer.host });
    const from = part <= upload.bytes ? part : 0;
    upload.onProgress(from);
    await client.upload(['Agent', 'ReceiveSlice'], chunksOf(upload, from), { deadlineMs: null, signal });
    return { kind: 'there' };
  } catch (error) {
    if (!(error instanceof P4Error)) throw error;
    return { kind: 'failed', error, offset };
  }
}

async function sliceState(client: AgentClient, id: SliceId, signal: AbortSignal): Promise<SliceState> {
  const options = { deadlineMs: limits.answerMs, signal };
  const { slices } = await client.call(['Agent', 'SliceState'], { sliceIds: [id] }, options);
  const [state] = slices;
  if (state === undefined)
    throw new P4Error('RPC_FAILED', { method: 'Agent.SliceState', why: 'an answer without the slice' });
  return state;
}

async function* chunksOf(
  { id, bytes, path, sha256, onProgress, onSent }: SliceUpload,
  offset: number,
): AsyncGenerator<SliceChunk> {
  yield { part: 'begin', begin: { sliceId: id, bytes: String(bytes), sha256, offset: String(offset) } };
  const handle = await open(path, 'r');
  try {
    for (let at = offset; at < bytes;) {
      // Each piece has memory of its own: gRPC may still hold the one before.
      const buffer = Buffer.allocUnsafe(Math.min(limits.sliceChunkBytes, bytes - at));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) throw new P4Error('MODEL_CHANGED', { file: path });
      yield { part: 'data', data: buffer.subarray(0, bytesRead) };
      at += bytesRead;
      onSent(bytesRead);
      onProgress(at);
    }
  } finally {
    await handle.close();
  }
}

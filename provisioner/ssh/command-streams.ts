/** What goes into a command and comes out of it, and how it ended. */
import { constants } from 'node:os';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { CommandEnd, RemoteCommand } from './remote-command.ts';
import type { RemoteOrder } from './session.ts';

/** Gives a command its input; a command that ends before it has read all of it is no fault. */
export async function fed(command: RemoteCommand, input: RemoteOrder['input']): Promise<void> {
  let fault: unknown = null;
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    try {
      if (input !== undefined) yield* input instanceof Uint8Array ? slices(input) : input;
    } catch (error) {
      fault = error;
      throw error;
    }
  };
  await pipeline(Readable.from(chunks()), command.stdin).catch(() => undefined);
  if (fault !== null) throw fault instanceof Error ? fault : new Error('the input broke off', { cause: fault });
}

function* slices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += limits.sshChunkBytes) yield bytes.subarray(at, at + limits.sshChunkBytes);
}

export async function gathered(stdout: Readable, host: HostName): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdout as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limits.sshOutputBytes)
      throw new P4Error('HOST_ANSWER_TOO_LONG', { host, most: limits.sshOutputBytes });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** As a shell reports it. */
export function statusOf({ status, signal }: CommandEnd): number {
  if (status !== null) return status;
  return signal === null ? 255 : 128 + (signalNumbers.get(signal) ?? 0);
}

const signalNumbers: ReadonlyMap<string, number> = new Map(Object.entries(constants.signals));

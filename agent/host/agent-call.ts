/** Asks the agent on this host, over its socket. */
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import {
  hostLine,
  hostSocketName,
  parseHostAnswer,
  type HostAnswer,
  type HostOrder,
} from '../../protocol/host-order.ts';
import { readLine } from './line.ts';

/**
 * The answer, or `null` where no agent listens.
 *
 * Rejects with what the agent refused it with, and `AGENT_SILENT`.
 */
export async function askAgent(runtimeFolder: string, order: HostOrder): Promise<HostAnswer | null> {
  const path = join(runtimeFolder, hostSocketName);
  const socket = await connected(path);
  if (socket === null) return null;
  try {
    const line = readLine(socket);
    socket.write(hostLine(order));
    const answer = parseHostAnswer(await line);
    if (answer.kind === 'failed') throw new P4Error(answer.code, answer.facts);
    return answer;
  } finally {
    socket.destroy();
  }
}

/** Nobody listens: there is no socket, or it is one of an agent that was killed. */
const nobody: ReadonlySet<unknown> = new Set(['ENOENT', 'ECONNREFUSED']);

function connected(path: string): Promise<Socket | null> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.off('error', failed);
      resolve(socket);
    });
    const failed = (error: Error): void => {
      if ('code' in error && nobody.has(error.code)) resolve(null);
      else reject(new P4Error('AGENT_SILENT', { socket: path, why: error.message }, error));
    };
    socket.once('error', failed);
  });
}

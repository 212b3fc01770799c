/** One line from a socket: bounded in length and in time. */
import type { Socket } from 'node:net';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';

/** Resolves with the line without its end; rejects with `AGENT_SILENT` when it does not come, or is too long. */
export function readLine(socket: Socket): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const fail = (why: string): void => {
      reject(new P4Error('AGENT_SILENT', { why }));
      socket.destroy();
    };
    socket.setTimeout(limits.hostAnswerMs, () => {
      fail(`no line within ${limits.hostAnswerMs / 1000} s`);
    });
    socket.on('data', (chunk: Buffer) => {
      const end = chunk.indexOf(0x0a);
      chunks.push(end === -1 ? chunk : chunk.subarray(0, end));
      bytes += chunk.length;
      if (end !== -1) {
        socket.setTimeout(0);
        resolve(Buffer.concat(chunks));
      } else if (bytes > limits.hostLineBytes) fail(`a line of more than ${limits.hostLineBytes} bytes`);
    });
    socket.once('error', (error) => {
      fail(error.message);
    });
    socket.once('close', () => {
      fail('the connection ended without a line');
    });
  });
}

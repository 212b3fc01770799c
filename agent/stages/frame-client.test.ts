import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { writeMessage } from '../../protocol/length-prefix.ts';
import { encodeStageJson } from '../../protocol/stage-control-codec.ts';
import { nodeIndex, ringName } from '../../protocol/ids.ts';
import { stageProtocolVersion } from '../../protocol/stage-control.ts';
import { eventually } from '../../test/fixture/eventually.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';
import { FrameClient } from './frame-client.ts';

test('a frame stays as it came, whatever comes after it', async (t) => {
  const path = join(temporaryFolder(t), 'data.sock');
  const stages: Socket[] = [];
  const server = createServer((socket) => {
    stages.push(socket);
    socket.once('data', () => {
      writeMessage(socket, encodeStageJson({ kind: 'accepted' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const frames: Uint8Array[] = [];
  const hello = { protocol: stageProtocolVersion, ring: ringName('test'), node: nodeIndex(0), generation: '1' };
  const client = await FrameClient.open(path, hello, {
    frame: (bytes) => {
      frames.push(bytes);
    },
    lost: (error) => {
      throw error;
    },
  });
  try {
    for (const fill of [1, 2, 3]) {
      writeMessage(present(stages[0], 'the agent has connected'), new Uint8Array(1000).fill(fill));
      await eventually(() => frames.length === fill, { what: 'the frame is there' });
    }
    assert.deepEqual(
      frames.map((frame) => [frame.length, new Set(frame).size, frame[0]]),
      [
        [1000, 1, 1],
        [1000, 1, 2],
        [1000, 1, 3],
      ],
    );
  } finally {
    client.close();
    server.close();
  }
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { SocketFolder } from '../socket-folder.ts';
import { AgentTunnel, type TunnelEnd } from './agent-tunnel.ts';

const never = new AbortController().signal;

suite('a tunnel to an agent', () => {
  /** Sends back what it gets. */
  let echo: Server;
  const arrived: Socket[] = [];
  const straight: TunnelEnd = {
    ready: () => Promise.resolve(),
    forward: async () => {
      const socket = connect((echo.address() as AddressInfo).port, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    },
    lost: () => null,
  };
  const tunnelWith = async (
    end: TunnelEnd,
  ): Promise<{ readonly tunnel: AgentTunnel; readonly folder: SocketFolder }> => {
    const folder = await SocketFolder.choose();
    return { folder, tunnel: new AgentTunnel({ through: 'gate', folder, name: '0.sock', end }) };
  };

  before(async () => {
    echo = createServer({ allowHalfOpen: true }, (socket) => {
      arrived.push(socket);
      socket.on('error', () => undefined);
      socket.pipe(socket);
    });
    echo.listen(0, '127.0.0.1');
    await once(echo, 'listening');
  });
  after(() => {
    echo.close();
    for (const socket of arrived) socket.destroy();
  });

  test('carries bytes both ways over a socket that its user alone may open, and leaves nothing', async () => {
    const { tunnel, folder } = await tunnelWith(straight);
    assert.ok(!existsSync(folder.path), 'nothing is made before it is used');
    await tunnel.open(never);
    await tunnel.open(never);
    assert.equal(statSync(dirname(tunnel.socketPath)).mode & 0o777, 0o700);
    const sent = Buffer.alloc(3_000_000, 'p4');
    const local = connect(tunnel.socketPath);
    const back: Buffer[] = [];
    let length = 0;
    local.write(sent);
    for await (const chunk of local as AsyncIterable<Buffer>) {
      back.push(chunk);
      length += chunk.length;
      if (length >= sent.length) break;
    }
    assert.ok(Buffer.concat(back).equals(sent));
    assert.equal(tunnel.failure(), null);
    await tunnel.close();
    await folder.remove();
    assert.ok(!existsSync(folder.path));
  });

  test('the end of one side is the end of the other', async () => {
    const { tunnel, folder } = await tunnelWith(straight);
    await tunnel.open(never);
    const local = connect(tunnel.socketPath);
    await once(local, 'connect');
    local.write('x');
    await once(local, 'data');
    arrived.at(-1)?.destroy();
    await once(local, 'close');
    const other = connect(tunnel.socketPath);
    other.write('x');
    await once(other, 'data');
    const far = arrived.at(-1);
    assert.ok(far !== undefined);
    const isOver = once(far, 'close');
    other.destroy();
    await isOver;
    await tunnel.close();
    await folder.remove();
  });

  test('a connection that does not come to the agent is closed, and why is kept until one does', async () => {
    let error: P4Error | null = new P4Error('AGENT_UNREACHABLE', { why: 'the host does not reach it' });
    const forward: TunnelEnd['forward'] = (signal) =>
      error === null ? straight.forward(signal) : Promise.reject(error);
    const { tunnel, folder } = await tunnelWith({ ...straight, forward });
    await tunnel.open(never);
    assert.equal((await buffer(connect(tunnel.socketPath))).length, 0);
    assert.equal(tunnel.failure(), error);
    error = null;
    const local = connect(tunnel.socketPath);
    local.write('x');
    await once(local, 'data');
    assert.equal(tunnel.failure(), null);
    await tunnel.close();
    await once(local, 'close');
    await folder.remove();
  });

  test('a host that ssh does not come to opens nothing', async () => {
    const error = new P4Error('HOST_UNREACHABLE', { host: 'gate' });
    const { tunnel, folder } = await tunnelWith({ ...straight, ready: () => Promise.reject(error) });
    await assert.rejects(tunnel.open(never), error);
    assert.ok(!existsSync(folder.path));
    await tunnel.close();
    await folder.remove();
  });
});

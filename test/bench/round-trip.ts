/** The network by itself: small messages to another process and back over plain TCP on loopback. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';

const address = '127.0.0.1';
/** About what carries a token. */
const messageBytes = 128;

/** Sends back whatever comes, for as long as the process lives. @returns the port */
export async function serveEcho(): Promise<number> {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  server.unref();
  server.listen(0, address);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Milliseconds of each round trip. */
export async function roundTrips(port: number, count: number): Promise<readonly number[]> {
  const socket = connect({ host: address, port, noDelay: true });
  try {
    await once(socket, 'connect');
    const message = Buffer.alloc(messageBytes, 1);
    const times: number[] = [];
    while (times.length < count) {
      const sentMs = performance.now();
      socket.write(message);
      for (let left = messageBytes; left > 0;) {
        const [chunk] = (await once(socket, 'data')) as [Buffer];
        left -= chunk.length;
      }
      times.push(performance.now() - sentMs);
    }
    return times;
  } finally {
    socket.destroy();
  }
}

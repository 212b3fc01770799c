/** A TCP relay for tests: sees the bytes that cross between two processes, and delays them. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface RelayOptions {
  readonly toPort: number;
  /** Each way. */
  readonly delayMs?: number;
}

export class Relay {
  /** Everything that crossed, towards the server and back. */
  readonly chunks: Buffer[] = [];
  /** Holds back what the server says, from here on. */
  isMute = false;
  /** Lets nothing more through to the server once so much has crossed; what comes after that is lost. */
  holdsAfterBytes = Infinity;
  readonly #server = createServer();
  readonly #sockets = new Set<Socket>();
  readonly #options: RelayOptions;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#server.on('connection', (near) => {
      const far = connect({ host: '127.0.0.1', port: options.toPort, noDelay: true });
      near.setNoDelay(true);
      this.#join(near, far, () => this.bytes < this.holdsAfterBytes);
      this.#join(far, near, () => !this.isMute);
    });
  }

  /** @returns the relay's port on 127.0.0.1 */
  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    // A TCP server's address is never a path.
    return (this.#server.address() as AddressInfo).port;
  }

  get bytes(): number {
    return this.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  /** Breaks what is connected, as a cable that is pulled. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #join(from: Socket, to: Socket, passes: () => boolean): void {
    const { delayMs = 0 } = this.#options;
    this.#sockets.add(from);
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    from.on('data', (chunk) => {
      if (!passes()) return;
      this.chunks.push(chunk);
      if (delayMs === 0) to.write(chunk);
      else setTimeout(() => to.write(chunk), delayMs).unref();
    });
  }
}

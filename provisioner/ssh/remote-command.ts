/** One command on one channel: from the request for it to its last word. */
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';

import type { ClientChannel } from 'ssh2';

import { limits } from '../../protocol/limits.ts';
import type { Link } from './link.ts';
import { OutputReader, PreambleReader, type Preamble } from './prelude.ts';

/** What became of a command; `status` and `signal` are `null` where the host did not say. */
export interface CommandEnd {
  readonly status: number | null;
  readonly signal: string | null;
}

export class RemoteCommand {
  readonly word: string;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when all output is read; rejects with HOST_LOST. */
  readonly ended: Promise<CommandEnd>;
  readonly #link: Link;
  readonly #channel: ClientChannel;
  readonly #preamble: PreambleReader;
  readonly #output: OutputReader;
  #onPreamble: () => void = () => undefined;
  #end: CommandEnd = { status: null, signal: null };
  #stderr = Buffer.alloc(0);
  #isClosed = false;
  #abandon: () => void = () => undefined;

  /** @param word as `shellCommand` got it */
  constructor(word: string, channel: ClientChannel, link: Link) {
    this.word = word;
    this.#channel = channel;
    this.#link = link;
    this.#preamble = new PreambleReader(word);
    this.#output = new OutputReader(word);
    this.stdin = this.#input();
    this.stdout = this.#outputStream();
    channel.stderr.on('data', (chunk: Buffer) => {
      this.#takeError(chunk);
    });
    channel.on('exit', (status: number | null, signal?: string) => {
      this.#end = { status, signal: signal ?? null };
    });
    this.ended = this.#finish();
    // Whoever wants to know awaits it; others must not be stopped by it.
    this.ended.catch(() => undefined);
  }

  get preamble(): Preamble {
    return this.#preamble.preamble;
  }

  /** What the login shell or sudo said before the script. */
  get wordsBefore(): string {
    return this.#preamble.words;
  }

  /** The last part of what the script said on standard error. */
  get stderr(): string {
    return this.#stderr.toString('utf8');
  }

  /** Whether a login shell prints without end, and no script starts. */
  get isNoise(): boolean {
    return this.#preamble.isTooLong || this.#output.isTooLong;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when the script's shell is there, sudo has asked once more, or the command has ended. */
  async next(former: Preamble): Promise<Preamble> {
    const isNews = (): boolean =>
      this.#isClosed || this.isNoise || this.preamble.pid !== null || this.preamble.prompts > former.prompts;
    if (!isNews()) {
      await new Promise<void>((resolve) => {
        this.#onPreamble = () => {
          if (isNews()) resolve();
        };
      });
    }
    return this.preamble;
  }

  /** Closes the channel, whatever the command does about it: sshd itself waits for the command's end. */
  close(): void {
    this.stdin.destroy();
    this.stdout.resume();
    this.#channel.close();
    this.#abandon();
  }

  /** What ssh itself has for ending a command. */
  signal(): void {
    this.#channel.signal('TERM');
  }

  #input(): Writable {
    const { socket } = this.#link;
    const channel = this.#channel;
    const stdin = new Writable({
      highWaterMark: limits.sshChunkBytes,
      write: (chunk: Buffer, _encoding, done) => {
        // A chunk becomes many small writes on the socket: they leave as one.
        socket.cork();
        channel.write(chunk, (error) => {
          done(error);
        });
        process.nextTick(() => {
          socket.uncork();
        });
      },
      final: (done) => {
        channel.end();
        done();
      },
    });
    // An error without a listener would end the process; `ended` tells what there is to tell.
    stdin.on('error', () => undefined);
    return stdin;
  }

  #outputStream(): Readable {
    const channel = this.#channel;
    const stdout = new Readable({
      highWaterMark: limits.sshChunkBytes,
      read: () => {
        channel.resume();
      },
    });
    channel.on('data', (chunk: Buffer) => {
      const own = this.#output.take(chunk);
      if (own.length === 0) {
        if (this.isNoise) this.#onPreamble();
      } else if (!stdout.destroyed && !stdout.push(own)) channel.pause();
    });
    // A stream that is given up must not hold the channel open.
    stdout.once('close', () => {
      channel.resume();
    });
    // An error without a listener would end the process; `ended` has it too.
    stdout.on('error', () => undefined);
    return stdout;
  }

  #takeError(chunk: Buffer): void {
    const own = this.#preamble.take(chunk);
    if (own.length > 0) {
      const all = Buffer.concat([this.#stderr, own]);
      this.#stderr = all.subarray(Math.max(0, all.length - limits.sshErrorBytes));
    }
    this.#onPreamble();
  }

  async #finish(): Promise<CommandEnd> {
    const { gone } = this.#link;
    const abandoned = new Promise<void>((resolve) => {
      this.#abandon = resolve;
    });
    const closed = Promise.all([once(this.#channel, 'close'), once(this.#channel.stderr, 'end')]);
    await Promise.race([closed, abandoned]);
    this.#isClosed = true;
    this.#onPreamble();
    this.stdin.destroy();
    const isWhole = this.#end.status !== null || this.#end.signal !== null;
    if (!isWhole && gone.aborted) {
      const error: unknown = gone.reason;
      this.stdout.destroy(error instanceof Error ? error : undefined);
      throw error;
    }
    if (isWhole && !this.stdout.destroyed) this.stdout.push(null);
    else this.stdout.destroy();
    return this.#end;
  }
}
